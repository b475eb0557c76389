import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AttemptTokens } from './attempt-tokens';
import { SglangChunkReader } from './sglang-chunk-reader';

describe('SGLang chunks', () => {
  it('gives the same tokens whether chunks repeat earlier ones or not, whatever the engine reported of itself', () => {
    const pieces = fc.array(fc.array(fc.nat(9), { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(pieces, fc.boolean(), fc.boolean(), fc.boolean(), (chunks, cumulative, logprobsRepeat, emptyEnd) => {
        const reader = new SglangChunkReader(!cumulative);
        const tokens = new AttemptTokens();
        const all = chunks.flat();
        let made: number[] = [];
        const steps = emptyEnd ? [...chunks, []] : chunks;
        steps.forEach((chunk, index) => {
          made = [...made, ...chunk];
          const shown = cumulative ? made : chunk;
          const logprobs = cumulative || logprobsRepeat ? made : chunk;
          tokens.take(
            reader.read({
              text: shown.join(''),
              output_ids: shown,
              meta_info: {
                completion_tokens: made.length,
                prompt_tokens: 1,
                output_token_logprobs: logprobs.map((value) => [-value, value, null]),
                finish_reason: index === steps.length - 1 ? { type: 'stop', matched: 7 } : null,
              },
            }),
          );
        });
        expect(tokens.finishReason).toBe('stop');
        expect(tokens.result('stop', undefined)).toMatchObject({
          tokenIds: all,
          text: all.join(''),
          tokenCount: all.length,
          logprobs: all.map((value) => -value),
          stopReason: 7,
        });
      }),
    );
  });

  it.each([
    [503, 'The request queue is full.', 'ENGINE_ERROR'],
    ['500', 'scheduler failed', 'ENGINE_ERROR'],
    [400, 'Image token mismatch', 'ENGINE_REJECTED'],
  ])('reads an abort with status %s as a failure of the engine, not of a trainer', (status, message, code) => {
    const ending = (more: object) => ({ meta_info: { finish_reason: { type: 'abort', message, ...more } } });
    expect(() => new SglangChunkReader().read(ending({ status_code: status }))).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) }),
    );
    for (const more of [{}, { status_code: null }]) {
      expect(new SglangChunkReader().read(ending(more))).toMatchObject({
        finishReason: 'aborted',
        stopReason: message,
      });
    }
  });

  it('trusts the counts of a chunk over the description of the engine', () => {
    const reader = new SglangChunkReader(true);
    reader.read({ text: 'ab', output_ids: [1, 2], meta_info: { completion_tokens: 2 } });
    const next = reader.read({ text: 'abc', output_ids: [1, 2, 3], meta_info: { completion_tokens: 3 } });
    expect(next.increment).toMatchObject({ tokenIds: [3], tokenCount: 1 });
  });
});
