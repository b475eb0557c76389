import { describe, expect, it } from 'vitest';
import type { GenerateOptions, GenerationResult, TokenIncrement } from '../engine-adapter';
import { continueText } from './continued-text';

/** Ids are bytes of UTF-8. */
const decode = (ids: number[]) => Promise.resolve(Buffer.from(ids).toString());
const toIds = (text: string): number[] => [...Buffer.from(text)];
/** "€" has three bytes. */
const [FIRST, SECOND, THIRD] = toIds('€') as [number, number, number];

interface Drawn {
  made: { tokenIds: number[]; text: string };
  /** Ids and text of the increments of the engine. */
  sent: [ids: number[], text: string][];
  reason?: GenerationResult['finishReason'];
  sendsStops?: boolean;
  decoder?: typeof decode | (() => Promise<undefined>);
  /** The tokens of the call are dropped. */
  isDropped?: boolean;
}

/** Runs a call. Returns ids and text of each increment, the text of the result, and the number of unchecked texts. */
async function runCall({ made, sent, reason = 'stop', sendsStops = true, decoder = decode, isDropped }: Drawn) {
  const given: [number[], string][] = [];
  let unchecked = 0;
  const options: GenerateOptions = {
    onTokens: ({ tokenIds = [], text }) => given.push([tokenIds, text]),
    onUncheckedText: () => (unchecked += 1),
  };
  const run = async ({ onTokens }: GenerateOptions): Promise<GenerationResult> => {
    for (const [tokenIds, text] of sent) {
      const increment: TokenIncrement = { tokenIds, text, tokenCount: tokenIds.length };
      onTokens?.(increment);
      await new Promise(setImmediate);
    }
    return { text: sent.map(([, text]) => text).join(''), tokenCount: 1, finishReason: reason };
  };
  const { text, tokenCount } = await continueText({ made, sendsStops, decode: decoder }, options, run);
  expect(given.flatMap(([ids]) => ids)).toEqual(isDropped ? [] : sent.flatMap(([ids]) => ids));
  expect(tokenCount).toBe(isDropped ? 0 : 1);
  expect(given.map(([, part]) => part).join('')).toBe(text);
  return { given, text, unchecked };
}

describe('the text of a call that continues ids', () => {
  const half = { tokenIds: [...toIds('ab'), FIRST, SECOND], text: 'ab' };

  it('stays as it is sent when the ids before it end with a whole character', async () => {
    const made = { tokenIds: toIds('ab'), text: 'ab' };
    expect(await runCall({ made, sent: [[toIds('c'), 'c']] })).toEqual({
      given: [[toIds('c'), 'c']],
      text: 'c',
      unchecked: 0,
    });
  });

  it.each([
    [
      'its first id completes',
      [
        [[THIRD], ''],
        [toIds('c'), 'c'],
      ],
      '€c',
    ],
    ['a chunk of several ids completes', [[[THIRD, ...toIds('cd')], 'cd']], '€cd'],
    [
      'the engine decodes alone',
      [
        [[THIRD], '\uFFFD'],
        [toIds('c'), 'c'],
      ],
      '€c',
    ],
    [
      'is followed by half of another in the same chunk',
      [
        [[THIRD, ...toIds('c'), FIRST], 'c'],
        [[SECOND, THIRD], '€'],
      ],
      '€c€',
    ],
  ] as [string, Drawn['sent'], string][])('has the character that %s', async (_, sent, text) => {
    expect(await runCall({ made: half, sent })).toMatchObject({ text, unchecked: 0 });
  });

  it('has the text that the engine has held back before the character', async () => {
    const made = { tokenIds: [...toIds('a foo'), FIRST], text: 'a ' };
    expect((await runCall({ made, sent: [[[SECOND, THIRD], '']] })).text).toBe('foo€');
  });

  it('comes with the last of the ids that complete the character, so that no id without text is taken for a half', async () => {
    const made = { tokenIds: [...toIds('ab'), FIRST], text: 'ab' };
    const { given } = await runCall({
      made,
      sent: [
        [[SECOND], ''],
        [[THIRD], ''],
      ],
    });
    expect(given).toEqual([
      [[SECOND], ''],
      [[THIRD], '€'],
    ]);
  });

  it.each([
    ['within the character', [[[SECOND], '']], decode],
    [
      'before the engine has decoded the ids before it',
      [[[SECOND, THIRD], '']],
      () => new Promise<undefined>(() => {}),
    ],
    ['by the end of an engine that answers no more', [[[SECOND, THIRD], '']], () => Promise.reject(new Error('ended'))],
  ] as [string, Drawn['sent'], Drawn['decoder']][])(
    'is generated again when the call is cut %s',
    async (_, sent, decoder) => {
      const made = { tokenIds: [...toIds('a foo'), FIRST], text: 'a ' };
      const cut = await runCall({ made, sent, decoder, reason: 'aborted', isDropped: true });
      expect(cut).toMatchObject({ text: '', unchecked: 0 });
      expect((await runCall({ made, sent: [[[SECOND, THIRD], '']] })).text).toBe('foo€');
    },
  );

  it('keeps its tokens when the call is cut after the character', async () => {
    expect(await runCall({ made: half, sent: [[[THIRD], '']], reason: 'aborted' })).toMatchObject({ text: '€' });
  });

  it('ends as the engine ends it', async () => {
    const sent: Drawn['sent'] = [[[THIRD, ...toIds('ab'), FIRST], 'ab\uFFFD']];
    expect((await runCall({ made: half, sent })).text).toBe('€ab\uFFFD');
  });

  it('has the decoded text of ids that never become a character', async () => {
    expect((await runCall({ made: half, sent: [[[FIRST], '\uFFFD']] })).text).toBe('\uFFFD\uFFFD');
  });

  it('is not guessed where text that begins a stop text may be held back', async () => {
    const sent: Drawn['sent'] = [
      [[THIRD, ...toIds('cd')], ''],
      [toIds('e'), 'cde'],
    ];
    expect(await runCall({ made: half, sent, sendsStops: false, reason: 'stop' })).toMatchObject({ text: '€cde' });
  });

  it('has no text twice that the engine sends after later ids', async () => {
    const sent: Drawn['sent'] = [
      [[THIRD, ...toIds('cd')], 'c'],
      [toIds('e'), 'de'],
    ];
    expect(await runCall({ made: half, sent })).toMatchObject({ text: '€cde', unchecked: 0 });
  });

  it('waits for the rest of a character at the end of many tokens', async () => {
    const many = 'x'.repeat(200);
    const sent: Drawn['sent'] = [
      [[THIRD, ...toIds(many), FIRST], many],
      [[SECOND, THIRD], '€'],
    ];
    expect(await runCall({ made: half, sent })).toMatchObject({ text: `€${many}€`, unchecked: 0 });
  });

  it.each([
    ['without the stop text that its ids have', 'end x '],
    ['with the stop text', 'end x end'],
    ['without any text', ''],
  ])('is there once when the engine ends the response %s', async (_, text) => {
    const given: TokenIncrement[] = [];
    const run = ({ onTokens }: GenerateOptions): Promise<GenerationResult> => {
      const tokenIds = [THIRD, ...toIds('end x endy')];
      onTokens?.({ tokenIds, text, tokenCount: tokenIds.length, isLast: true, matchedStop: 'end' });
      return Promise.resolve({ text, tokenCount: tokenIds.length, finishReason: 'stop' });
    };
    const call = { made: half, sendsStops: true, decode };
    const result = await continueText(call, { onTokens: (increment) => given.push(increment) }, run);
    expect([result.text, given.map((increment) => increment.text)]).toEqual(['€end x end', ['€end x end']]);
  });

  it('comes with the first end of the response, where its stop text is removed', async () => {
    const given: TokenIncrement[] = [];
    const run = async ({ onTokens }: GenerateOptions): Promise<GenerationResult> => {
      const end = { isLast: true as const, matchedStop: 'end' };
      onTokens?.({ tokenIds: [THIRD, ...toIds('end')], text: 'end', tokenCount: 4, ...end });
      onTokens?.({ tokenIds: [], text: '', tokenCount: 0, isLast: true });
      return { text: 'end', tokenCount: 4, finishReason: 'stop' };
    };
    const call = { made: half, sendsStops: true, decode };
    await continueText(call, { onTokens: (increment) => given.push(increment) }, run);
    expect(given).toMatchObject([{ text: '€end', matchedStop: 'end' }, { text: '' }]);
  });

  it('is not passed on without its character when the engine does not decode in time', async () => {
    const given: TokenIncrement[] = [];
    const run = async ({ onTokens, signal }: GenerateOptions): Promise<GenerationResult> => {
      onTokens?.({ tokenIds: [THIRD], text: '', tokenCount: 1 });
      await new Promise<void>((resolve) => signal?.addEventListener('abort', resolve));
      onTokens?.({ tokenIds: toIds('c'), text: 'c', tokenCount: 1 });
      return { text: 'c', tokenCount: 2, finishReason: 'aborted' };
    };
    const late = { made: half, sendsStops: true, decode: () => Promise.reject(new Error('busy')), decodeMs: 1 };
    const call = continueText(late, { onTokens: (increment) => given.push(increment) }, run);
    await expect(call).rejects.toMatchObject({ code: 'ENGINE_BUSY', retryable: true });
    expect(given.flatMap(({ tokenIds }) => tokenIds)).toEqual([]);
  });

  it('is counted as unchecked when the engine does not decode, or decodes another text', async () => {
    const sent: Drawn['sent'] = [[[THIRD], '']];
    expect((await runCall({ made: half, sent, decoder: () => Promise.resolve(undefined) })).unchecked).toBe(1);
    expect((await runCall({ made: { ...half, text: 'xy' }, sent })).unchecked).toBe(1);
  });
});
