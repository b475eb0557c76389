import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { cutText } from './text';

it('cuts a text between characters, and replaces half a surrogate pair', () => {
  expect(cutText('engine 😀', 8)).toBe('engine 😀');
  expect(cutText('engine 😀!', 7)).toBe('engine ');
  expect(cutText('😀😀😀', 2)).toBe('😀😀');
  expect(cutText('a\ud83d', 8)).toBe('a\ufffd');
  expect(cutText('\udc00\ud83dx', 2)).toBe('\ufffd\ufffd');
  expect(cutText('abc', 0)).toBe('');
});

it('property: a cut text is well formed, no longer than asked, and the beginning of the text', () => {
  const text = fc.array(fc.constantFrom('a', 'é', '\ud800', '\udc00', '😀')).map((parts) => parts.join(''));
  fc.assert(
    fc.property(text, fc.integer({ min: 0, max: 20 }), (given, most) => {
      const cut = cutText(given, most);
      expect(cut.isWellFormed()).toBe(true);
      expect(Array.from(cut).length).toBe(Math.min(most, Array.from(given).length));
      expect(given.toWellFormed().startsWith(cut)).toBe(true);
    }),
  );
});
