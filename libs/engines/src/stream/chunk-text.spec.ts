import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { ChunkText } from './chunk-text';

const pieces = fc.array(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 6 }), { minLength: 2, maxLength: 8 });

it('adds up to the text of the engine, whose new texts may end with the whole text', () => {
  fc.assert(
    fc.property(pieces, fc.string({ maxLength: 5 }), (texts, rest) => {
      const reader = new ChunkText('new');
      const read = texts.map((text) => reader.next(text, { isLast: false }));
      const whole = texts.join('') + rest;
      expect(read.join('') + reader.next(whole, { form: 'whole', isLast: true })).toBe(whole);
    }),
  );
});

it('refuses a whole text that does not begin with the new texts before it', () => {
  fc.assert(
    fc.property(pieces, (texts) => {
      const reader = new ChunkText('new');
      for (const text of texts) reader.append(text);
      const other = `${texts.join('').slice(0, -1)}\u0000 and more`;
      expect(() => reader.next(other, { form: 'whole', isLast: false })).toThrow('does not continue');
    }),
  );
});
