import * as fc from 'fast-check';
import { describe, expect, inject, it } from 'vitest';
import { AttemptTokens } from './attempt-tokens';
import { EventStreamParser } from './event-stream';
import { INTEGER, LIST, RepeatedEvent, STRING, parseString, parseWholeNumber } from './repeated-event';
import { SglangChunkReader } from './sglang-chunk-reader';

const FIELDS = [
  { path: ['text'], form: STRING },
  { path: ['meta', 'ids'], form: LIST },
  { path: ['meta', 'count'], form: INTEGER },
];

/** JSON as engines write it: without spaces, or with Python's spaces. */
const written = (value: unknown, isSpaced: boolean): string =>
  isSpaced
    ? JSON.stringify(value, null, 1)
        .replaceAll(/\n */g, ' ')
        .replaceAll(/([[{]) | ([\]}])/g, '$1$2')
    : JSON.stringify(value);

const text = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('"', '\\', '\n', '","meta":{"ids":', '"text":', '}}'),
);
const options = { numRuns: 400 * inject('runsFactor') };

describe('an event that repeats another', () => {
  it('has the values that JSON.parse reads, or is not recognized', () => {
    const event = fc.record({
      text,
      meta: fc.record({ ids: fc.array(fc.nat()), count: fc.nat(), other: fc.jsonValue() }),
    });
    let recognized = 0;
    fc.assert(
      fc.property(event, event, fc.boolean(), fc.boolean(), (first, second, isSpaced, hasSameRest) => {
        if (hasSameRest) second.meta.other = first.meta.other;
        const repeated = RepeatedEvent.of(written(first, isSpaced), FIELDS);
        const values = repeated?.parseValues(written(second, isSpaced));
        if (values === undefined) return;
        recognized += 1;
        expect(values.map((value) => JSON.parse(value) as unknown)).toEqual([
          second.text,
          second.meta.ids,
          second.meta.count,
        ]);
        expect(JSON.stringify(second.meta.other)).toBe(JSON.stringify(first.meta.other));
      }),
      options,
    );
    expect(recognized).toBeGreaterThan(options.numRuns / 10);
  });

  it('is an event that JSON.parse accepts, whatever was changed in its text', () => {
    const json = '{"text":"a","meta":{"ids":[1,2],"count":3,"id":"x"}}';
    const repeated = RepeatedEvent.of(json, FIELDS)!;
    const change = fc.record({
      at: fc.nat(json.length),
      cut: fc.nat(3),
      put: fc.string({ unit: fc.constantFrom(...'"\\[]{},:019.-eantul ') }),
    });
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 3 }), (changes) => {
        const other = changes.reduce((all, { at, cut, put }) => all.slice(0, at) + put + all.slice(at + cut), json);
        const sources = repeated.parseValues(other);
        let values: unknown[];
        try {
          values = (sources ?? ['?']).map((value) => JSON.parse(value) as unknown);
        } catch {
          return;
        }
        expect(JSON.parse(other)).toEqual({ text: values[0], meta: { ids: values[1], count: values[2], id: 'x' } });
      }),
      options,
    );
  });

  it('is not created where a name stands for something else', () => {
    const wrong = [
      '{"text":"a","meta":{"ids":[],"count":1},"text":"b"}',
      '{"other":{"text":"a"},"text":"b","meta":{"ids":[],"count":1}}',
      '{"text":"a","meta":{"x\\"count":1,"count":2,"ids":[]}}',
      '{"text":null,"meta":{"ids":[],"count":1}}',
      '{"other":1}',
    ];
    for (const json of wrong) expect(RepeatedEvent.of(json, FIELDS)).toBeUndefined();
  });
});

it('reads strings and whole numbers as JSON.parse, or leaves them to it', () => {
  const parsed = (json: string): unknown => {
    try {
      return JSON.parse(json);
    } catch {
      return 'none';
    }
  };
  const anything = fc.oneof(
    fc.json(),
    fc.string({ unit: fc.constantFrom(...'"\\u00e1\n -.') }),
    text.map((one) => JSON.stringify(one)),
  );
  fc.assert(
    fc.property(anything, (json) => {
      let string: unknown = 'none';
      try {
        string = parseString(json);
      } catch {
        // No JSON.
      }
      expect(string).toEqual(parsed(json));
      const number = parseWholeNumber(json);
      if (number !== undefined) expect(number).toBe(parsed(json));
    }),
    options,
  );
  expect([parseWholeNumber('01'), parseWholeNumber('0'), parseWholeNumber('')]).toEqual([undefined, 0, undefined]);
});

describe('chunks of SGLang that repeat the one before', () => {
  const number = fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true, max: 0 }), fc.constantFrom(null, -1, 0));
  const chunk = fc.record({
    text,
    tokens: fc.array(fc.tuple(fc.nat(200_000), number, fc.constantFrom(null, null, 'a]')), { maxLength: 3 }),
    version: fc.constantFrom('1', '1', '1', '2'),
    repeatsAll: fc.boolean(),
  });

  it('give the same steps as parsed ones, at every split of the bytes', () => {
    let repeated = 0;
    fc.assert(
      fc.property(
        fc.array(chunk, { maxLength: 12 }),
        fc.boolean(),
        fc.boolean(),
        fc.nat(),
        (chunks, isSpaced, hasLogprobs, cut) => {
          let made: (typeof chunks)[number]['tokens'] = [];
          const events = chunks.map(({ text: said, tokens, version, repeatsAll }, index) => {
            made = [...made, ...tokens];
            const event = {
              text: said,
              output_ids: tokens.map(([id]) => id),
              meta_info: {
                id: 'x',
                finish_reason: index === chunks.length - 1 ? { type: 'length' } : null,
                completion_tokens: made.length,
                weight_version: version,
                ...(hasLogprobs && {
                  output_token_logprobs: (repeatsAll && index % 4 === 3 ? made : tokens).map(([id, value, name]) => [
                    value,
                    id,
                    name,
                  ]),
                }),
              },
            };
            return written(event, isSpaced);
          });
          const plain = new SglangChunkReader('new');
          const choices: unknown[] = [];
          const parsed = new AttemptTokens(({ choice }) => choices.push(choice));
          for (const event of events) parsed.take(plain.read(JSON.parse(event) as Record<string, unknown>));

          const reader = new SglangChunkReader('new');
          const same: unknown[] = [];
          const tokens = new AttemptTokens(({ choice }) => same.push(choice));
          const parser = new EventStreamParser(1_048_576);
          const bytes = Buffer.from(events.map((event) => `data: ${event}\n\n`).join(''));
          const at = cut % (bytes.length + 1);
          for (const event of [bytes.subarray(0, at), bytes.subarray(at)].flatMap((piece) => parser.push(piece))) {
            const step = reader.readRepeated(event);
            repeated += Number(step !== undefined);
            tokens.take(step ?? reader.read(JSON.parse(event) as Record<string, unknown>, event));
          }
          expect(tokens.result('length', undefined)).toEqual(parsed.result('length', undefined));
          expect(tokens.finishReason).toBe(parsed.finishReason);
          expect(same).toEqual(choices);
        },
      ),
      options,
    );
    expect(repeated).toBeGreaterThan(options.numRuns / 10);
  });

  it('are each parsed after some that were prepared in vain', () => {
    const reader = new SglangChunkReader('new');
    const json = (index: number, time: number): string =>
      JSON.stringify({ text: 'a', output_ids: [index], meta_info: { completion_tokens: index + 1, time } });
    const isRepeated = (index: number, time: number): boolean => {
      const event = json(index, time);
      if (reader.readRepeated(event) !== undefined) return true;
      reader.read(JSON.parse(event) as Record<string, unknown>, event);
      return false;
    };
    for (let index = 0; index < 10; index++) expect(isRepeated(index, index)).toBe(false);
    expect(isRepeated(10, 9)).toBe(false);
  });
});
