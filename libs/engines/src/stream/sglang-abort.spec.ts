import { describe, expect, it } from 'vitest';
import { AttemptTokens } from './attempt-tokens';
import type { TextForm } from './chunk-text';
import { SglangChunkReader } from './sglang-chunk-reader';

const TEXTS = ['The', ' quick', ' brown', ' fox'];
const FORMS: [TextForm, TextForm][] = [
  ['whole', 'whole'],
  ['whole', 'new'],
  ['new', 'new'],
];

/** Reads `sent` chunks of one token each, and further chunks. */
function readAfter([textForm, idForm]: [TextForm, TextForm], sent: number, chunks: object[]) {
  const reader = new SglangChunkReader(textForm);
  const tokens = new AttemptTokens();
  const running = Array.from({ length: sent }, (_, index) => ({
    text: TEXTS.slice(textForm === 'whole' ? 0 : index, index + 1).join(''),
    output_ids: idsTo(index + 1).slice(idForm === 'whole' ? 0 : index),
    meta_info: { completion_tokens: index + 1, prompt_tokens: 3, finish_reason: null },
  }));
  for (const chunk of [...running, ...chunks]) {
    const json = JSON.stringify(chunk);
    tokens.take(reader.readRepeated(json) ?? reader.read(JSON.parse(json) as Record<string, unknown>, json));
  }
  return tokens.result(tokens.finishReason ?? 'aborted', undefined);
}

/** The chunk by which SGLang ends a request of `made` tokens that was aborted while it waited. */
function waitingAbort(made: number, meta: object = {}): object {
  return {
    text: TEXTS.slice(0, made).join(''),
    output_ids: idsTo(made).slice(-1),
    meta_info: {
      finish_reason: { type: 'abort', message: 'Abort in waiting queue' },
      completion_tokens: made,
      ...meta,
    },
  };
}

function idsTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => 100 + index);
}

describe.each(FORMS)('an abort of a waiting request, after chunks with %s texts and %s ids', (...form) => {
  it.each([
    ['all tokens were sent', 3, 3],
    ['one token was not sent', 2, 3],
    ['no token exists', 0, 0],
    ['one token exists and was sent', 1, 1],
  ])('has each token once, if %s', (_, sent, made) => {
    const result = readAfter(form, sent, [waitingAbort(made)]);
    expect(result).toMatchObject({ finishReason: 'aborted', tokenCount: made, text: TEXTS.slice(0, made).join('') });
    expect(result.tokenIds ?? []).toEqual(idsTo(made));
  });

  it('is dropped with its text, if it has more ids than it counts', () => {
    const ids = idsTo(2);
    const repeated = { text: 'The quickThe quick', output_ids: [...ids, ...ids] };
    const meta = { finish_reason: { type: 'abort' }, prompt_tokens: 3, completion_tokens: 2 };
    const result = readAfter(form, 2, [{ ...repeated, meta_info: meta }]);
    expect(result).toMatchObject({ tokenCount: 2, text: 'The quick', tokenIds: ids, finishReason: 'aborted' });
  });

  it('has the ids of the log probabilities, if several tokens were not sent', () => {
    const entries = idsTo(3).map((id) => [-0.5, id, null]);
    for (const sent of [0, 1]) {
      const result = readAfter(form, sent, [waitingAbort(3, { output_token_logprobs: entries })]);
      expect(result).toMatchObject({ tokenIds: idsTo(3), text: 'The quick brown' });
    }
  });

  it('loses tokens whose ids are unknown, with their text, and reports it', () => {
    const result = readAfter(form, 1, [waitingAbort(3)]);
    expect(result).toMatchObject({ tokenIds: [100], text: 'The', tokenCount: 1, finishReason: 'aborted' });
    expect(result.stopReason).toContain('the last tokens are lost');
  });

  it.each([{}, { completion_tokens: 0, prompt_tokens: 0 }])('of older releases (%j) changes no token', (counts) => {
    const chunk = {
      text: '',
      meta_info: { finish_reason: { type: 'abort', message: 'Abort before prefill' }, ...counts },
    };
    expect(readAfter(form, 2, [chunk])).toMatchObject({ tokenIds: [100, 101], text: 'The quick' });
  });
});

describe('a chunk of a running request is refused', () => {
  it.each([
    [
      'counts tokens without ids',
      { text: ' brown fox', output_ids: [102], meta_info: { completion_tokens: 4, prompt_tokens: 3 } },
    ],
    ['has no ids after chunks with ids', { text: ' brown', meta_info: { completion_tokens: 3, prompt_tokens: 3 } }],
    [
      'counts fewer tokens than before',
      { text: '', output_ids: [101], meta_info: { completion_tokens: 1, prompt_tokens: 3 } },
    ],
    ['has no meta_info', { message: 'KV load failed', type: 'InternalServerError' }],
  ])('if it %s', (_, chunk) => {
    for (const form of FORMS) {
      expect(() => readAfter(form, 2, [chunk])).toThrow(expect.objectContaining({ code: 'ENGINE_PROTOCOL' }));
    }
  });

  it('if its text does not continue the whole text before it', () => {
    const chunk = { text: 'Other words', output_ids: [102], meta_info: { completion_tokens: 3, prompt_tokens: 3 } };
    expect(() => readAfter(['whole', 'new'], 2, [chunk])).toThrow(expect.objectContaining({ code: 'ENGINE_PROTOCOL' }));
  });
});

it('recognizes the form of texts by the chunks of an engine that has not described itself', () => {
  for (const [textForm, idForm] of FORMS) {
    const reader = new SglangChunkReader();
    const texts = TEXTS.map((_, index) => {
      const text = TEXTS.slice(textForm === 'whole' ? 0 : index, index + 1).join('');
      const ids = idsTo(index + 1).slice(idForm === 'whole' ? 0 : index);
      return reader.read({ text, output_ids: ids, meta_info: { completion_tokens: index + 1 } }).increment?.text;
    });
    expect(texts).toEqual(TEXTS);
  }
});

it('does not guess whether a text that is sent again is new', () => {
  const chunk = (index: number) => ({ text: ' a', output_ids: [index], meta_info: { completion_tokens: index } });
  for (const [textForm, text] of [
    ['new', ' a'],
    ['whole', ''],
  ] as [TextForm, string][]) {
    const reader = new SglangChunkReader(textForm);
    reader.read(chunk(1));
    expect(reader.read(chunk(2)).increment).toMatchObject({ text, tokenIds: [2] });
  }
  const reader = new SglangChunkReader();
  reader.read(chunk(1));
  expect(() => reader.read(chunk(2))).toThrow(expect.objectContaining({ code: 'ENGINE_PROTOCOL' }));
});

it.each(FORMS)('the chunk of an abort that repeats all %s texts and %s ids adds only new tokens', (...form) => {
  for (const made of [2, 3]) {
    const meta = { finish_reason: { type: 'abort' }, completion_tokens: made, prompt_tokens: 3 };
    const chunk = { text: TEXTS.slice(0, made).join(''), output_ids: idsTo(made), meta_info: meta };
    const result = readAfter(form, 2, [chunk]);
    expect(result).toMatchObject({ tokenIds: idsTo(made), text: TEXTS.slice(0, made).join('') });
  }
});
