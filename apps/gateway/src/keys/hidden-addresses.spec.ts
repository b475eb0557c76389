import { BroomwagonError } from '@broomwagon/contracts';
import { expect, it } from 'vitest';
import { toCallerError } from './hidden-addresses';

const shown = (message: string, options = {}) =>
  toCallerError(new BroomwagonError('ENGINE_ERROR', message, options), 'client').message;

it.each([
  ['http://10.0.0.5:8000/v1/completions answered 500: «boom»', 'the engine answered 500: «boom»'],
  ['https://engine-1.pool.svc:8000, not a stream', 'the engine, not a stream'],
  ['http://[fd00::1]:8000 failed', 'the engine failed'],
  ['upstream 10.0.0.5:8000 and 10.0.0.6', 'upstream the engine and the engine'],
  ['at ::1:8000, [fd00::1]:8000 and fd00::1', 'at the engine, the engine and the engine'],
])('hides the addresses of %s', (message, expected) => {
  expect(shown(message)).toBe(expected);
});

it.each(['version 0.10.2', 'at 12:30:45', 'std::bad_alloc', '3.5 of 1:2', '«temperature: must be below 2.0»'])(
  'leaves %s as it is',
  (message) => expect(shown(message)).toBe(message),
);

it('reports only the code of a broken connection, since its text may name hosts', () => {
  const cause = Object.assign(new Error("altnames: engine-1 is not in the cert's"), { code: 'ERR_TLS' });
  expect(shown('Connection to https://engine-1 broke', { cause })).toBe('The connection to the engine failed: ERR_TLS');
  const refused = new BroomwagonError('ENGINE_UNREACHABLE', 'engine-1 is not in ENGINE_ALLOW_LIST');
  expect(toCallerError(refused, 'client').message).toBe('The connection to the engine failed');
});

it('keeps code, field and time, and shows trainers everything', () => {
  const error = new BroomwagonError('ENGINE_REJECTED', 'http://e:1 refused', { field: 'model', retryAfterMs: 5 });
  expect(toCallerError(error, 'client')).toMatchObject({ code: 'ENGINE_REJECTED', field: 'model', retryAfterMs: 5 });
  expect(toCallerError(error, 'trainer')).toBe(error);
});
