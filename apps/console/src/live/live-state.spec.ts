import { AdminApiError } from '@broomwagon/admin-client';
import { expect, it } from 'vitest';
import { type LiveState, toFailed } from './live-state';

const fail = (code: AdminApiError['code']) => new AdminApiError({ code, reason: 'why', retryable: true });
const READ: LiveState<number> = { state: 'read', value: 7, readAtMs: 1 };

it('has no value after a first read that fails, and keeps the time of the first failure', () => {
  const first = toFailed<number>({ state: 'loading', sinceMs: 0 }, fail('UNREACHABLE'), 5);
  expect(first).toMatchObject({ state: 'failed', failure: { sinceMs: 5, error: { code: 'UNREACHABLE' } } });
  expect(first.value).toBeUndefined();
  const second = toFailed(first, fail('UNAVAILABLE'), 9);
  expect(second.failure).toMatchObject({ sinceMs: 5, error: { code: 'UNAVAILABLE' } });
});

it('keeps an old value with the time of its read while reads fail', () => {
  const failed = toFailed(READ, fail('TIMED_OUT'), 5);
  expect(failed).toMatchObject({ state: 'read', value: 7, readAtMs: 1, failure: { sinceMs: 5 } });
});

it('forgets a value whose id the services do not know any more', () => {
  expect(toFailed(READ, fail('ROUND_NOT_FOUND'), 5).state).toBe('failed');
  expect(toFailed(READ, fail('ROUTE_NOT_FOUND'), 5).state).toBe('read');
});
