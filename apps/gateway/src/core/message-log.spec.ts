import { describe, expect, it } from 'vitest';
import { MessageLog } from './message-log';
import { TokenLog } from './token-log';

interface CallDelta {
  index?: number;
  id?: string;
  name?: string;
  arguments?: string;
}

function readToolCalls(deltas: CallDelta[]) {
  const log = new MessageLog(undefined);
  for (const { name, arguments: text, ...others } of deltas) {
    const called = { ...(name !== undefined && { name }), ...(text !== undefined && { arguments: text }) };
    log.take({ text: '', tokenCount: 1, choice: { delta: { tool_calls: [{ ...others, function: called }] } } });
  }
  const { tool_calls: calls = [] } = log.after();
  return calls.map((call) => [call.index, call.id, call.function?.name, call.function?.arguments]);
}

describe('calls of tools', () => {
  const two = [
    [0, 'a', 'f', '{"p":1}'],
    [1, 'b', 'f', '{"p":2}'],
  ];

  it.each<[string, CallDelta[]]>([
    [
      'an index in each delta',
      [
        { index: 0, id: 'a', name: 'f' },
        { index: 0, arguments: '{"p":' },
        { index: 0, arguments: '1}' },
        { index: 1, id: 'b', name: 'f', arguments: '{"p":2}' },
      ],
    ],
    [
      'no index',
      [
        { id: 'a', name: 'f' },
        { arguments: '{"p":' },
        { arguments: '1}' },
        { id: 'b', name: 'f', arguments: '{"p":2}' },
      ],
    ],
    [
      'a repeated index',
      [
        { index: 0, id: 'a', name: 'f' },
        { index: 0, arguments: '{"p":1}' },
        { index: 0, id: 'b', name: 'f' },
        { index: 0, arguments: '{"p":2}' },
      ],
    ],
    [
      'an index that is late',
      [
        { id: 'a', name: 'f' },
        { id: 'b', name: 'f' },
        { index: 0, arguments: '{"p":1}' },
        { index: 1, arguments: '{"p":2}' },
      ],
    ],
    [
      'an id in each delta',
      [
        { id: 'a', name: 'f' },
        { id: 'b', name: 'f' },
        { id: 'b', arguments: '{"p":2}' },
        { id: 'a', arguments: '{"p":1}' },
      ],
    ],
    [
      'indexes from 1',
      [
        { index: 1, id: 'a', name: 'f', arguments: '{"p":1}' },
        { index: 2, id: 'b', name: 'f', arguments: '{"p":2}' },
      ],
    ],
    [
      'an id that is late',
      [
        { index: 0, name: 'f' },
        { index: 0, id: 'a', arguments: '{"p":1}' },
        { index: 1, id: 'b', name: 'f', arguments: '{"p":2}' },
      ],
    ],
  ])('have their own arguments with %s', (_, deltas) => {
    expect(readToolCalls(deltas)).toEqual(two);
  });

  it('without ids and indexes begin with a function name', () => {
    const calls = readToolCalls([{ name: 'f', arguments: '{}' }, { name: 'g' }, { arguments: '[]' }]);
    expect(calls).toEqual([
      [0, undefined, 'f', '{}'],
      [1, undefined, 'g', '[]'],
    ]);
  });

  it('take arguments that arrive after the end of the choice, whose reason stays', () => {
    const log = new MessageLog(undefined);
    const delta = (text: string, more: object = {}) => ({
      tool_calls: [{ index: 0, ...more, function: { arguments: text } }],
    });
    log.take({ text: '', tokenCount: 1, choice: { delta: delta('{', { id: 'a' }), finish_reason: 'tool_calls' } });
    log.take({ text: '', tokenCount: 1, choice: { delta: delta('}') } });
    log.take({ text: '', tokenCount: 0, choice: { delta: {}, finish_reason: 'stop' } });
    expect(log.after().tool_calls![0]).toMatchObject({ id: 'a', function: { arguments: '{}' } });
    expect(log.finishReason).toBe('tool_calls');
  });
});

it('has an entry for each token, which is null where the engine has sent no log probability', () => {
  const log = new MessageLog(0);
  const entry = (token: string, logprob: number | null) => ({ token, logprob });
  const take = (content: object[] | null, id: number) =>
    log.take({
      text: 'x',
      tokenIds: [id],
      tokenCount: 1,
      choice: { delta: {}, logprobs: { content: content as never } },
    });
  take(null, 4);
  take([entry('a', -0.1)], 5);
  take(null, 6);
  take([entry('b', null)], 7);
  expect(log.logprobs).toMatchObject([
    { logprob: null },
    entry('a', -0.1),
    { token: 'token_id:6', logprob: null },
    entry('b', null),
  ]);
});

it('keeps the end of a text from readers while a stop text may begin there, and removes the stop text', () => {
  const log = new MessageLog(undefined);
  const tokens = new TokenLog(['END'], false, log);
  const take = (content: string, more: object = {}) =>
    tokens.take({ text: content, tokenIds: [1], tokenCount: 1, choice: { delta: { content } }, ...more });
  take('a E');
  expect(log.after()).toEqual({ content: 'a ' });
  const position = log.position;
  take('at');
  expect(log.after(position)).toEqual({ content: 'Eat' });
  take(' EN');
  take('D', { isLast: true, matchedStop: 'END' });
  expect(log.whole()).toMatchObject({ content: 'a Eat ' });
});

it('removes no stop text that the engine has already removed by parsing', () => {
  const log = new MessageLog(undefined);
  const tokens = new TokenLog(['</think>'], false, log);
  tokens.take({ text: 'so', tokenCount: 1, choice: { delta: { reasoning_content: 'so' } } });
  tokens.take({ text: '', tokenCount: 1, choice: { delta: {} }, isLast: true, matchedStop: '</think>' });
  expect(log.whole()).toMatchObject({ reasoning_content: 'so' });
});
