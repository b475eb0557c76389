import fc from 'fast-check';
import { expect, inject, it } from 'vitest';
import { withoutTokenNames } from './token-names';

const RUNS = 500 * inject('runsFactor');
/** Texts of tokens that look like parts of the JSON around them. */
const parts = ['"', '\\', ']', '}', ',', '],"', ']},"finish_reason":', ',"tokens":[', '],"top_logprobs":[', '🙂', 'a'];
const text = fc.array(fc.constantFrom(...parts), { maxLength: 4 }).map((all) => all.join(''));
const alternatives = fc.option(fc.dictionary(text, fc.integer({ max: 0 })));
const entries = fc.array(fc.record({ token: text, logprob: fc.integer({ max: 0 }), alternatives }));

/** The fields of `logprobs` in the order of vLLM. */
function toLogprobs(all: { token: string; logprob: number; alternatives: object | null }[]) {
  return {
    text_offset: all.map((_, index) => index),
    token_logprobs: all.map(({ logprob }) => logprob),
    tokens: all.map(({ token }) => token),
    top_logprobs: all.map((one) => one.alternatives),
  };
}

function toEvent(logprobs: object | null, words: string) {
  const choice = { index: 0, text: words, logprobs, finish_reason: null, stop_reason: words, token_ids: [1] };
  return { id: words, choices: [choice], usage: { completion_tokens: 1 } };
}

it('leaves names and alternatives out of an event of vLLM, and nothing else', () => {
  fc.assert(
    fc.property(entries, text, (all, words) => {
      const { tokens: _, top_logprobs: _tops, ...others } = toLogprobs(all);
      const event = JSON.stringify(toEvent(toLogprobs(all), words));
      const shortened = withoutTokenNames(event);
      const plain = JSON.stringify(toEvent(others, words));
      // Names that look like the end of a list stay.
      const isLookalike = all.some(({ token, alternatives: some }) =>
        [token, ...Object.keys(some ?? {})].some((name) => name.endsWith('],')),
      );
      expect(isLookalike && shortened === event ? plain : shortened).toBe(plain);
    }),
    { numRuns: RUNS },
  );
});

it('keeps log probabilities, ids and text, whatever the order of the fields and without alternatives', () => {
  fc.assert(
    fc.property(entries, text, fc.constantFrom(0, 1, 2, 3), fc.boolean(), (all, words, first, isNull) => {
      const fields = Object.entries({ ...toLogprobs(all), ...(isNull && { top_logprobs: null }) });
      const turned = Object.fromEntries([...fields.slice(first), ...fields.slice(0, first)]);
      const event = toEvent(words === '' ? null : turned, words);
      const { choices, ...rest } = JSON.parse(withoutTokenNames(JSON.stringify(event))) as typeof event;
      const { logprobs, ...choice } = choices[0]!;
      expect({ ...rest, choices: [{ ...choice, logprobs: event.choices[0]!.logprobs }] }).toEqual(event);
      expect((logprobs as Partial<typeof turned> | null)?.token_logprobs).toEqual(
        words === '' ? undefined : turned.token_logprobs,
      );
    }),
    { numRuns: RUNS },
  );
});
