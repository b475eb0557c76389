import { expect, it } from 'vitest';
import { PreparedAnswers } from './prepared-answers';

/** Events in the bytes of chunks. */
function parse(...chunks: Buffer[]): { choices?: { token_ids: number[] }[]; output_ids?: number[] }[] {
  const texts = chunks.map((chunk) => {
    const text = chunk.toString();
    const [size = ''] = text.split('\r\n', 1);
    const body = text.slice(size.length + 2, -2);
    expect(Buffer.byteLength(body)).toBe(Number.parseInt(size, 16));
    return body;
  });
  const lines = texts
    .join('')
    .split('\n\n')
    .filter((line) => line !== '' && line !== 'data: [DONE]');
  return lines.map((line) => JSON.parse(line.slice('data: '.length)) as ReturnType<typeof parse>[number]);
}

it('gives the same tokens in one event, in several events, and in a whole answer of vLLM', () => {
  const answers = new PreparedAnswers('vllm');
  const ids = (events: ReturnType<typeof parse>) => events.flatMap(({ choices }) => choices![0]?.token_ids ?? []);
  const single = ids(parse(...[0, 1, 2].map((at) => answers.event(at, at + 1, true, at === 2 ? 'length' : undefined))));
  expect(single).toHaveLength(3);
  expect(ids(parse(answers.event(0, 3, true, 'length')))).toEqual(single);
  expect(ids([JSON.parse(answers.whole(3, true).toString())])).toEqual(single);
  expect(parse(answers.event(2, 3, true, 'abort'))).toMatchObject([
    { choices: [{ finish_reason: 'abort' }], usage: { completion_tokens: 3 } },
    { choices: [], usage: { completion_tokens: 3 } },
  ]);
});

it('gives the same tokens in one event and in several events of SGLang', () => {
  const answers = new PreparedAnswers('sglang');
  const ids = (events: ReturnType<typeof parse>) => events.flatMap(({ output_ids: all = [] }) => all);
  const single = ids(parse(answers.event(0, 1, true), answers.event(1, 4, true, 'length')));
  expect(ids(parse(answers.event(0, 4, true, 'length')))).toEqual(single);
  expect(parse(answers.event(0, 4, true, 'length'))).toMatchObject([{ meta_info: { finish_reason: { length: 4 } } }]);
});
