import { expect, it } from 'vitest';
import { parseRetryAfter, toErrorCode } from './answer-status';

it.each([
  [[408, 425, 429, 502, 503, 504, 529], 'ENGINE_BUSY'],
  [[400, 409, 413, 422], 'ENGINE_REJECTED'],
  [[401, 403, 404, 500, 501, 507, NaN], 'ENGINE_ERROR'],
])('the statuses %j are %s', (statuses, code) => {
  expect(new Set(statuses.map(toErrorCode))).toEqual(new Set([code]));
});

it('reads Retry-After in seconds and as a date, within its bounds', () => {
  const now = Date.parse('Sat, 28 Nov 2026 12:00:00 GMT');
  expect(parseRetryAfter('5', now)).toBe(5_000);
  expect(parseRetryAfter(' 0.25 ', now)).toBe(250);
  expect(parseRetryAfter('Sat, 28 Nov 2026 12:00:30 GMT', now)).toBe(30_000);
  expect(parseRetryAfter('Sat, 28 Nov 2026 11:59:00 GMT', now)).toBe(0);
  expect(parseRetryAfter('86400', now)).toBe(300_000);
  for (const text of [undefined, '', 'soon', '-']) expect(parseRetryAfter(text, now)).toBeUndefined();
});
