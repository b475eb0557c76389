import fc from 'fast-check';
import { expect, it, vi } from 'vitest';
import { bytes, dateTime, duration, plainId } from './format';
import { setZone } from './zone';

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

it('shows bytes with one unit', () => {
  expect([0, 999, 1_000, 1_400_000_000, 2e15].map(bytes)).toEqual(['0 B', '999 B', '1.0 kB', '1.4 GB', '2000.0 TB']);
});

it('shows date, time and zone', () => {
  vi.stubGlobal('localStorage', { setItem: () => undefined });
  setZone('utc');
  expect(dateTime(Date.UTC(2026, 10, 29, 15, 2, 11))).toBe('2026-11-29 15:02:11 UTC');
  vi.unstubAllGlobals();
});

it('shows marks of direction in ids instead of following them', () => {
  expect(plainId('job/\u202Egnp.exe\u2069/0')).toBe('job/\uFFFDgnp.exe\uFFFD/0');
  expect(plainId('\u05D0\u05D1/\u00E9/<b>')).toBe('\u05D0\u05D1/\u00E9/<b>');
});
