import { expect, it } from 'vitest';
import type { Attempt } from './attempt';
import { AttemptLoader } from './attempt-loader';

it('reads the prompt of a group once for all samples that wait for it, and a stopped sample waits no longer', async () => {
  const reads: string[] = [];
  let answer!: (bytes: Buffer) => void;
  const get = (ref: string): Promise<Buffer> => {
    reads.push(ref);
    return new Promise((resolve) => (answer = resolve));
  };
  const config = { transitionDeadlineMs: 1_000 };
  const loader = new AttemptLoader(
    ...([{ get }, config, {}] as unknown as ConstructorParameters<typeof AttemptLoader>),
  );
  const load = (signal: AbortSignal) =>
    loader.load({ claim: { promptRef: 'prompt', segments: [] as object[] }, signal } as Attempt);
  const stopping = new AbortController();
  const running = [load(new AbortController().signal), load(new AbortController().signal)];
  const stopped = load(stopping.signal);
  stopping.abort(new Error('cut'));
  await expect(stopped).rejects.toThrow('cut');
  answer(Buffer.from('{"text":"a"}'));
  expect(await Promise.all(running)).toMatchObject([{ prompt: { text: 'a' } }, { prompt: { text: 'a' } }]);
  expect(reads).toEqual(['prompt']);

  const invalid = load(new AbortController().signal);
  answer(Buffer.from('{"text":1}'));
  await expect(invalid).rejects.toThrow('The payload prompt is not a prompt');
  expect(reads).toHaveLength(2);
});
