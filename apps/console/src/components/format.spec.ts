import fc from 'fast-check';
import { expect, it } from 'vitest';
import { duration, plainId } from './format';

it('shows durations in units that are not full', () => {
  const shown = [-5, 40, 9_940, 9_960, 59_700, 119_600, 3_599_600, 7_199_000, 86_399_000, 172_700_000].map(duration);
  expect(shown.join(', ')).toBe(
    '0.0 s, 0.0 s, 9.9 s, 10 s, 1 min 0 s, 2 min 0 s, 1 h 0 min, 2 h 0 min, 1 d 0 h, 2 d 0 h',
  );
  fc.assert(
    fc.property(fc.nat({ max: 10 * 86_400_000 }), (ms) => {
      expect(duration(ms)).not.toMatch(/(^| )(60 (s|min)|24 h)/);
    }),
  );
});

it('shows marks of direction in ids instead of following them', () => {
  expect(plainId('job/\u202Egnp.exe\u2069/0')).toBe('job/\uFFFDgnp.exe\uFFFD/0');
  expect(plainId('\u05D0\u05D1/\u00E9/<b>')).toBe('\u05D0\u05D1/\u00E9/<b>');
});
