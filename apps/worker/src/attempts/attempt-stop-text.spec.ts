import { expect, it } from 'vitest';
import type { SegmentPayload } from '@broomwagon/contracts';
import type { TokenIncrement } from '@broomwagon/engines';
import { startAttempt } from './attempt.fixture';

const SAMPLING = { stop: ['</answer>'], logprobs: true };
const token = (id: number, text: string, more: Partial<TokenIncrement> = {}): TokenIncrement => ({
  tokenIds: [id],
  text,
  tokenCount: 1,
  logprobs: [-id],
  ...more,
});

/** An attempt that continues a segment with the given payload; without a payload, a first attempt. */
async function continued(payload?: SegmentPayload, maxTokens = 100) {
  const bench = await startAttempt(() => ({ sampling: SAMPLING, maxTokens }));
  if (payload !== undefined) {
    const name = { pool: 'default', job: 'j', owner: 'j/g/0', name: '1.2' };
    const ref = await bench.payloads.put(name, Buffer.from(JSON.stringify(payload)));
    const segment = { attempt: '1-z', serverId: 's', serverEpoch: 'e1', weightVersion: 1, ref };
    bench.attempt.claim.segments.push({ ...segment, tokenCount: payload.tokenIds!.length });
  }
  return bench;
}

it('holds the text with which a stop text may begin when it is cut', async () => {
  const { run, engines, attempt, controlPlane, payloads } = await continued();
  engines.generate = async (_, { onTokens }) => {
    for (const increment of [token(1, 'a '), token(2, '</an'), token(3, '')]) onTokens?.(increment);
    attempt.stop('cut');
    return { text: '', tokenCount: 3, finishReason: 'aborted' };
  };
  await run();
  const { segment } = controlPlane.of('request.fail')[0]!;
  // The third token has no text: it may be the start of a character, and is generated again.
  expect(segment).toMatchObject({ tokenCount: 2 });
  expect(payloads.json(segment!.ref)).toEqual({ tokenIds: [1, 2], text: 'a ', heldText: '</an', logprobs: [-1, -2] });
});

it('ends at a stop text that begins in an earlier segment, and stops the engine', async () => {
  const { run, engines, controlPlane, payloads } = await continued({ tokenIds: [1, 2], text: 'a ', heldText: '</an' });
  engines.generate = (_, { onTokens, signal }) =>
    new Promise((resolve) => {
      signal?.addEventListener('abort', () => resolve({ text: '', tokenCount: 2, finishReason: 'aborted' }));
      onTokens?.(token(3, 'swer'));
      onTokens?.(token(4, '> b'));
      onTokens?.(token(5, ' c'));
    });
  expect(await run()).toBe('finished');
  expect(engines.requests[0]!.made).toEqual({ tokenIds: [1, 2], text: 'a </an', tokenCount: 2 });
  const [complete] = controlPlane.of('request.complete');
  expect(complete).toMatchObject({ finishReason: 'stop', segment: { tokenCount: 2 } });
  const stored = payloads.json(complete!.segment!.ref);
  expect(stored).toEqual({ tokenIds: [3, 4], text: '', logprobs: [-3, -4], stopReason: '</answer>' });
});

it('returns the held text if no stop text follows, also without a further token', async () => {
  const payload = { tokenIds: [1, 2], text: 'a ', heldText: '</an' };
  const { run, engines, controlPlane, payloads } = await continued(payload);
  engines.generate = async (_, { onTokens }) => {
    onTokens?.(token(3, 'gle', { isLast: true }));
    return { text: '', tokenCount: 1, finishReason: 'stop', engineFinishReason: 'stop' };
  };
  await run();
  const { segment, engineFinishReason } = controlPlane.of('request.complete')[0]!;
  expect(engineFinishReason).toBe('stop');
  expect(payloads.json(segment!.ref)).toMatchObject({ tokenIds: [3], text: '</angle', engineFinishReason: 'stop' });

  const exhausted = await continued(payload, 2);
  expect(await exhausted.run()).toBe('finished');
  const [complete] = exhausted.controlPlane.of('request.complete');
  expect(complete).toMatchObject({
    finishReason: 'length',
    segment: { tokenCount: 0, serverId: 's', weightVersion: 1 },
  });
  expect(exhausted.payloads.json(complete!.segment!.ref)).toEqual({ tokenIds: [], text: '</an', logprobs: [] });
});
