import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { BroomwagonError } from './errors';
import { Outages, SUSPECTED_MS } from './outages';

const REDIS = { name: 'Redis at 10.0.0.1:6379' };
const SERVICE = { name: 'load-balancer of pool p', ids: { pool: 'p' }, isService: true };
let lines: string[];
let outages: Outages;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
  lines = [];
  const write = (_: unknown, text: string) => void lines.push(text);
  outages = new Outages({ warn: write, log: write });
});
afterEach(() => vi.useRealTimers());

it('logs the begin and the end of an outage once, with cause and duration', () => {
  for (let failure = 0; failure < 3; failure += 1) outages.begin(REDIS, 'connect ECONNREFUSED');
  vi.advanceTimersByTime(12_340);
  outages.end(REDIS.name);
  outages.end(REDIS.name);
  expect(lines).toEqual([
    'Outage begins: Redis at 10.0.0.1:6379 does not work: connect ECONNREFUSED',
    'Outage has ended: Redis at 10.0.0.1:6379 works again after 12.3 s',
  ]);
});

it('ends an outage that two connections have noticed when both work again', () => {
  const [state, payloads] = [{}, {}];
  outages.begin(REDIS, 'closed', state);
  outages.begin({ ...REDIS, purpose: 'payloads' }, 'closed', payloads);
  outages.end(REDIS.name, state);
  expect(lines).toHaveLength(1);
  outages.end(REDIS.name, payloads);
  expect(lines).toHaveLength(2);
});

it('logs the outage of a service only when it lasts, and not while NATS or Redis explains it', () => {
  outages.begin(SERVICE, 'TIMEOUT');
  vi.advanceTimersByTime(SUSPECTED_MS - 1);
  outages.begin(SERVICE, 'TIMEOUT');
  outages.end(SERVICE.name);
  expect(lines).toEqual([]);

  outages.begin(SERVICE, 'TIMEOUT');
  outages.begin(REDIS, 'closed');
  vi.advanceTimersByTime(SUSPECTED_MS);
  outages.begin(SERVICE, 'UNAVAILABLE');
  outages.end(REDIS.name);
  // After the end of the cause, the service gets time to answer again.
  outages.begin(SERVICE, 'UNAVAILABLE');
  expect(lines.filter((line) => line.includes('load-balancer'))).toEqual([]);
  vi.advanceTimersByTime(SUSPECTED_MS);
  outages.begin(SERVICE, 'UNAVAILABLE');
  expect(lines.at(-1)).toBe('Outage begins: load-balancer of pool p does not work: UNAVAILABLE');
});

it('explains failed calls while an outage is open, and no other errors', () => {
  const unavailable = new BroomwagonError('UNAVAILABLE', 'Redis did not run x');
  const retries = new Error('Reached the max retries per request limit (which is 3).');
  const wrapped = new BroomwagonError('INTERNAL', 'A defect', { cause: retries });
  const unreachable = new BroomwagonError('ENGINE_UNREACHABLE', 'The engine does not answer');
  const isExplained = () => [unavailable, retries, wrapped].map((error) => outages.explains(error));
  expect(isExplained()).toEqual([false, false, false]);
  outages.begin({ name: 'engine e', isLeaf: true }, 'closed');
  expect([...isExplained(), outages.explains(unreachable)]).toEqual([false, false, false, true]);
  outages.begin(REDIS, 'closed');
  expect(isExplained()).toEqual([true, true, true]);
  outages.end(REDIS.name);
  // Calls that have begun in the outage end after it.
  expect(isExplained()).toEqual([true, true, true]);
  vi.advanceTimersByTime(5_000);
  expect(isExplained()).toEqual([false, false, false]);
  outages.begin(REDIS, 'closed');
  for (const code of ['FENCED', 'ENGINE_ERROR', 'VALIDATION_FAILED'] as const)
    expect(outages.explains(new BroomwagonError(code, 'no')), code).toBe(false);
  expect(outages.explains(new TypeError('x is not a function'))).toBe(false);
});
