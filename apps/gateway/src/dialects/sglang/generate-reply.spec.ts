import * as fc from 'fast-check';
import { expect, inject, it } from 'vitest';
import { Generation } from '../../core/generation';
import { INPUT } from '../../core/generation.fixture';
import { buildReply, runningReply } from './generate-reply';

function createGeneration(logprobs: boolean): Generation {
  const input = { ...INPUT, prompt: { promptTokenIds: [1, 2] }, sampling: { logprobs }, maxTokens: 100 };
  return new Generation('my "id"', '', input);
}

it('writes running chunks in the same way as the last chunk, whatever calls of engines report', () => {
  const step = fc.record({
    text: fc.string({ unit: 'grapheme', minLength: 1 }),
    ids: fc.option(fc.array(fc.nat()), { nil: undefined }),
    fields: fc.option(fc.dictionary(fc.string(), fc.jsonValue()), { nil: undefined }),
    version: fc.constantFrom('1', '2'),
  });
  const index = fc.option(fc.nat(9), { nil: undefined });
  fc.assert(
    fc.property(fc.array(step), fc.boolean(), index, (steps, logprobs, choice) => {
      const generation = createGeneration(logprobs);
      const { tokens } = generation;
      const chunk = runningReply(generation, choice);
      let from = { tokens: 0, characters: 0 };
      for (const { text, ids, fields, version } of steps) {
        const tokenCount = ids?.length ?? 1;
        tokens.take({ text, tokenIds: ids, logprobs: ids?.map((id) => -id / 7), tokenCount });
        const expected = JSON.stringify({
          ...buildReply(generation, from),
          ...(choice !== undefined && { index: choice }),
        });
        expect(JSON.parse(chunk(from))).toEqual(JSON.parse(expected));
        from = { tokens: tokens.count, characters: tokens.textLength };
        if (fields === undefined) continue;
        const engineFields = { ...fields, weight_version: version };
        const made = { start: tokens.count - tokenCount, end: tokens.count, weightVersion: 0 };
        generation.report.takeResult({ engineFields }, made);
      }
    }),
    { numRuns: 40 * inject('runsFactor') },
  );
});
