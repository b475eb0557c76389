import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AttemptTokens } from './attempt-tokens';
import type { TextForm } from './chunk-text';
import { SglangChunkReader } from './sglang-chunk-reader';

/** Texts and ids of the chunks of releases: the default, 0.5.3 and `--stream-output`, 0.5.10 and newer. */
const FORMS: [TextForm, TextForm][] = [
  ['whole', 'whole'],
  ['whole', 'new'],
  ['new', 'new'],
];

describe('SGLang chunks', () => {
  it('gives the same tokens whether texts, ids and log probabilities repeat earlier ones or not', () => {
    const pieces = fc.array(fc.array(fc.nat(9), { minLength: 1, maxLength: 5 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(
        pieces,
        fc.constantFrom(...FORMS),
        fc.boolean(),
        fc.boolean(),
        (chunks, form, logprobsRepeat, emptyEnd) => {
          const [textForm, idForm] = form;
          const reader = new SglangChunkReader(textForm);
          const tokens = new AttemptTokens();
          const all = chunks.flat();
          let made: number[] = [];
          const steps = emptyEnd ? [...chunks, []] : chunks;
          steps.forEach((chunk, index) => {
            made = [...made, ...chunk];
            const logprobs = idForm === 'whole' || logprobsRepeat ? made : chunk;
            tokens.take(
              reader.read({
                text: (textForm === 'whole' ? made : chunk).join(''),
                output_ids: idForm === 'whole' ? made : chunk,
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
        },
      ),
    );
  });

  it.each([
    ['all entries', false, 3],
    ['all entries beside new tokens', true, 3],
    ['entries of new tokens', true, 1],
    ['entries of two new tokens', true, 2],
  ])('keeps log probabilities of the prompt and of alternatives; chunks have %s', (_, incremental, shown) => {
    const alternatives = [1, 2, 2, 3, 3, 6].map((id) => [[-0.5, id, null]]);
    const input = [
      [null, 7, null],
      [-0.25, 8, null],
    ];
    const step = shown === 2 ? 2 : 1;
    const chunks = Array.from({ length: alternatives.length / step }, (__, index) => {
      const to = (index + 1) * step;
      const tokens = (from: number) => Array.from({ length: to - from }, () => 5);
      const entries = alternatives.slice(shown === 3 ? 0 : to - step, to);
      const meta = { completion_tokens: to, output_top_logprobs: entries, output_token_ids_logprobs: entries };
      const finish = to === alternatives.length ? { type: 'length' } : null;
      return JSON.stringify({
        text: '',
        output_ids: tokens(incremental ? to - step : 0),
        meta_info: { ...meta, input_token_logprobs: input, finish_reason: finish },
      });
    });
    const reader = new SglangChunkReader(incremental ? 'new' : 'whole');
    const tokens = new AttemptTokens();
    for (const json of chunks) tokens.take(reader.readRepeated(json) ?? reader.read(JSON.parse(json), json));
    expect(tokens.result('length', undefined)).toMatchObject({
      tokenCount: 6,
      engineFields: {
        output_top_logprobs: alternatives,
        output_token_ids_logprobs: alternatives,
        input_token_logprobs: input,
      },
    });
  });

  it.each([
    [503, 'The request queue is full.', 'ENGINE_BUSY'],
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
    const reader = new SglangChunkReader('new');
    reader.read({ text: 'ab', output_ids: [1, 2], meta_info: { completion_tokens: 2 } });
    const next = reader.read({ text: 'abc', output_ids: [1, 2, 3], meta_info: { completion_tokens: 3 } });
    expect(next.increment).toMatchObject({ tokenIds: [3], tokenCount: 1 });
  });
});
