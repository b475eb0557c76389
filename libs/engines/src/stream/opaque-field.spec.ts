import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { OpaqueField } from './opaque-field';
import { OpaqueText, withOpaqueTexts } from './opaque-text';

const NAME = 'routed_experts';
/** Texts that look like the field, beside ordinary ones. */
const text = fc.oneof(fc.string(), fc.constantFrom(NAME, `"${NAME}":"`, `\\"${NAME}`, `"${NAME}`, '"', 'rout'));
const experts = fc.oneof(fc.base64String(), text, fc.constant('\\"\\\\'), fc.constant(null), fc.array(fc.integer()));
const fields = fc.record({ text, [NAME]: experts, list: fc.array(text), inner: fc.record({ [NAME]: experts }) });
/** JSON with spaces, as Python may write it. */
const spaced = (json: string): string => json.replaceAll(`"${NAME}":`, `"${NAME}" : `);

/** The chunks of some bytes, cut at these places. */
function splitChunks(bytes: Buffer, cuts: number[]): Buffer[] {
  const edges = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length];
  return edges.slice(1).map((edge, index) => bytes.subarray(edges[index], edge));
}

describe('a field that is taken out of a stream', () => {
  it('is restored unchanged, wherever the stream is cut, and other fields stay', () => {
    fc.assert(
      fc.property(fields, fc.array(fc.nat()), fc.boolean(), (value, cuts, isSpaced) => {
        const json = JSON.stringify(value);
        // Spaces are put in only where no text looks like the field.
        const hasLookalike = JSON.stringify([value.text, value.list]).includes(NAME);
        const bytes = Buffer.from(isSpaced && !hasLookalike ? spaced(json) : json);
        const field = new OpaqueField(NAME);
        const parsed = Buffer.concat(splitChunks(bytes, cuts).map((chunk) => field.take(chunk)));
        const whole = JSON.parse(parsed.toString()) as Record<string, unknown>;
        const step = { engineFields: { whole } };
        field.restore(step);
        for (const [given, found] of [
          [value[NAME], whole[NAME]],
          [value.inner[NAME], (whole.inner as typeof value.inner)[NAME]],
        ] as const) {
          expect(found instanceof OpaqueText).toBe(typeof given === 'string');
        }
        expect(JSON.parse(JSON.stringify(whole))).toEqual(value);
        const written = [withOpaqueTexts(() => JSON.stringify(whole))].flat();
        expect(JSON.parse(Buffer.concat(written.map((part) => Buffer.from(part))).toString())).toEqual(value);
      }),
    );
  });

  it('is not in the bytes that are parsed, nor copied', () => {
    const long = Buffer.alloc(100_000, 'A');
    const field = new OpaqueField(NAME);
    const parsed = [`data: {"${NAME}":"`, long, `"}\n\n`].map((part) => field.take(Buffer.from(part)));
    expect(Buffer.concat(parsed).length).toBeLessThan(100);
    const whole = JSON.parse(Buffer.concat(parsed).toString().slice(6)) as Record<string, unknown>;
    field.restore({ engineFields: { whole } });
    expect((whole[NAME] as OpaqueText).length).toBe(long.length);
  });

  it('may not fill the memory, also if no event is read with it', () => {
    const half = Buffer.alloc(256 * 1_048_576, 'A');
    const field = new OpaqueField(NAME);
    const toBytes = (part: string | Buffer) => (typeof part === 'string' ? Buffer.from(part) : part);
    const take = (...parts: (string | Buffer)[]) => parts.map((part) => field.take(toBytes(part)).toString());
    const event = take(`{"${NAME}":"`, half, '"}').join('');
    field.restore({ engineFields: { whole: JSON.parse(event) as Record<string, unknown> } });
    take(`{"${NAME}":"`, half, '"}', `{"${NAME}":"`, half);
    expect(() => take('A')).toThrow(expect.objectContaining({ code: 'ENGINE_PROTOCOL' }));
  });

  it('keeps nothing back of an event that is whole', () => {
    const event = Buffer.from(`data: {"text":"${NAME}"}\n\n`);
    expect(new OpaqueField(NAME).take(event)).toEqual(event);
  });
});
