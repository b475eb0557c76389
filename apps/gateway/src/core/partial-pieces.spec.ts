import fc from 'fast-check';
import { expect, inject, it } from 'vitest';
import { Generation } from './generation';
import { INPUT } from './generation.fixture';
import { buildPartial, joinPieces, SavedPieces, type Partial } from './partial-pieces';

const RUNS = 300 * inject('runsFactor');
const CHAT = { ...INPUT, prompt: { messages: [] } };
// Few letters, so that beginnings of the stop text are frequent.
const text = fc.constantFrom('a', 'b', 'ab', 'x', '');
const act = fc.oneof(
  fc.record({ kind: fc.constant('token' as const), text, name: fc.constantFrom('content', 'reasoning', 'tool') }),
  fc.record({ kind: fc.constant('save' as const), fate: fc.constantFrom('saved', 'saved', 'lost', 'unanswered') }),
  fc.record({ kind: fc.constant('repeat' as const) }),
);

/** The joined saves as JSON, without the fields that connect saves. */
function toText(partial: Partial): string {
  return JSON.stringify({ ...partial, chain: undefined, after: undefined });
}

it('gives the reader all that the last save had, whatever saves were lost or repeated', () => {
  fc.assert(
    fc.property(fc.boolean(), fc.array(act, { maxLength: 40 }), (isChat, acts) => {
      const input = { ...(isChat ? CHAT : INPUT), sampling: { stop: ['abx'] }, maxTokens: 99 };
      const generation = new Generation('r', 't', input, { kind: 'id', key: 'r', digest: 'd' });
      const pieces = new SavedPieces(generation);
      let stored: { first: string; pieces: string[] } | undefined;
      let expected: string | undefined;
      for (const one of acts) {
        if (one.kind === 'token') {
          const id = generation.tokens.count;
          const call = { tool_calls: [{ index: 0, function: { arguments: one.text } }] };
          const delta = one.name === 'tool' ? call : { [one.name]: one.text };
          const choice = isChat ? { choice: { delta } } : {};
          generation.tokens.take({ text: one.text, tokenIds: [id], logprobs: [-id], tokenCount: 1, ...choice });
        } else if (one.kind === 'repeat') {
          // A write that arrives twice.
          const last = stored?.pieces.at(-1);
          if (last !== undefined) stored!.pieces.push(last);
        } else {
          const { partial, piece } = pieces.next();
          if (one.fate !== 'lost') {
            const saved = JSON.stringify(partial);
            if (piece === undefined) stored = { first: saved, pieces: [] };
            else stored!.pieces.push(saved);
            expected = toText(buildPartial(generation));
          }
          if (one.fate !== 'saved') pieces.beginAgain();
        }
        if (stored === undefined) continue;
        const [first, ...more] = [stored.first, ...stored.pieces].map((saved) => JSON.parse(saved) as Partial);
        expect(toText(joinPieces(first!, more))).toBe(expected);
      }
    }),
    { numRuns: RUNS },
  );
});

it('saves the new tokens of a long response only', () => {
  const generation = new Generation('r', 't', { ...INPUT, maxTokens: 8_000 }, { kind: 'id', key: 'r', digest: 'd' });
  const pieces = new SavedPieces(generation);
  let bytes = 0;
  for (let count = 0; count < 8_000; count += 100) {
    const tokenIds = Array.from({ length: 100 }, (_, index) => 1_000 + count + index);
    const logprobs = tokenIds.map((id) => -Math.fround(1 / id));
    generation.tokens.take({ text: 'word '.repeat(100), tokenIds, logprobs, tokenCount: 100 });
    bytes += JSON.stringify(pieces.next().partial).length;
  }
  expect(bytes / JSON.stringify(buildPartial(generation)).length).toBeLessThan(1.2);
});
