import type { OpenRound, ServerStatus } from '@broomwagon/contracts';
import { expect, it } from 'vitest';
import { findAlarms, type PoolNumbers } from './overview-alarms';
import { FINE as EMPTY, replica, RUNBOOKS, server, SERVICES } from './pool-numbers.fixture';

const ROUND = {
  job: 'job',
  roundId: 'round',
  step: 7,
  state: 'open',
  openedAtMs: 0,
  ageMs: 10_000,
  medianMs: 9_000,
} as OpenRound;
const FINE: PoolNumbers = { ...EMPTY, rounds: [ROUND] };

interface Scenario {
  numbers?: Partial<PoolNumbers>;
  servers?: ServerStatus[];
  runbook: string;
  severity: 'critical' | 'warning';
  message: RegExp;
  sinceMs?: number;
}
const blocked = (code: NonNullable<OpenRound['blockedReason']>['code']): Partial<PoolNumbers> => ({
  rounds: [{ ...ROUND, blockedReason: { code, message: 'do this', sinceMs: 5 } }],
});
const SCENARIOS: Record<string, Scenario> = {
  'Redis is dead': {
    numbers: { redis: undefined, unread: [{ part: 'redis', code: 'UNAVAILABLE', reason: 'connect ECONNREFUSED' }] },
    runbook: 'BroomwagonNotReady',
    severity: 'critical',
    message: /^Redis does not answer: connect ECONNREFUSED$/,
  },
  'NATS is frozen': {
    numbers: { services: undefined, unread: [{ part: 'services', code: 'UNAVAILABLE', reason: 'no reply' }] },
    runbook: 'BroomwagonNotReady',
    severity: 'critical',
    message: /^No service answers over NATS/,
  },
  'no trainer-coordinator answers': {
    numbers: { services: [replica('load-balancer')] },
    runbook: 'BroomwagonServiceMissing',
    severity: 'critical',
    message: /trainer-coordinator/,
  },
  'a replica is not ready': {
    numbers: {
      services: [
        ...SERVICES,
        replica('worker', { ready: false, checks: [{ check: 'nats', passes: false, reason: 'closed' }] }),
      ],
    },
    runbook: 'BroomwagonNotReady',
    severity: 'critical',
    message: /^worker one is not ready: nats: closed$/,
  },
  'a service has raised an alarm': {
    numbers: {
      services: [
        ...SERVICES,
        replica('load-balancer', {
          replicaId: 'two',
          alarms: [
            { pool: 'p', alarm: 'servers-silent', message: 'Most engines are silent', sinceMs: 9 },
            { pool: 'other', alarm: 'workers-mass', message: 'of another pool', sinceMs: 9 },
          ],
        }),
      ],
    },
    runbook: 'BroomwagonAlarm',
    severity: 'critical',
    message: /servers-silent.*Most engines are silent/,
    sinceMs: 9,
  },
  'Redis is full': {
    numbers: { redis: { usedBytes: 90, maxBytes: 100 } },
    runbook: 'BroomwagonRedisFull',
    severity: 'critical',
    message: /90 %/,
  },
  'Redis is nearly full': {
    numbers: { redis: { usedBytes: 75, maxBytes: 100 } },
    runbook: 'BroomwagonRedisMemory',
    severity: 'warning',
    message: /75 %/,
  },
  'one engine is dead': {
    servers: [server('a'), server('b', { state: 'failed', heartbeatAgeMs: 60_000 })],
    runbook: 'BroomwagonNoReadyServer',
    severity: 'warning',
    message: /^1 server is failed.*\(b\)$/,
    sinceMs: 40_000,
  },
  'one engine hangs': {
    servers: [server('a'), server('b', { hung: true })],
    runbook: 'BroomwagonServersHung',
    severity: 'warning',
    message: /hung/,
  },
  'the weights of one server are unknown': {
    servers: [server('a'), server('b', { weightsUnknown: true })],
    runbook: 'BroomwagonAlarm',
    severity: 'warning',
    message: /without known weights/,
  },
  'no server is ready': {
    servers: [server('a', { state: 'cordoned' })],
    runbook: 'BroomwagonNoReadyServer',
    severity: 'critical',
    message: /^0 of 1 servers are ready$/,
  },
  'the pool is paused': {
    numbers: { paused: true },
    runbook: 'BroomwagonNoGrants',
    severity: 'warning',
    message: /^The pool is paused/,
  },
  'no worker is live': {
    numbers: { workers: 0 },
    runbook: 'BroomwagonNoWorkers',
    severity: 'critical',
    message: /No worker/,
  },
  'a round is slow': {
    numbers: { rounds: [{ ...ROUND, medianMs: 4_000 }] },
    runbook: 'BroomwagonStepSlow',
    severity: 'warning',
    message: /^Step 7 of job is open for 2\.5 times its median$/,
  },
  'the payload store of a job is full': {
    numbers: blocked('PAYLOAD_STORE_FULL'),
    runbook: 'BroomwagonJobBlocked',
    severity: 'critical',
    message: /PAYLOAD_STORE_FULL/,
    sinceMs: 5,
  },
  'a round waits for servers with known weights': {
    numbers: blocked('NO_SERVER_AVAILABLE'),
    runbook: 'BroomwagonNoReadyServer',
    severity: 'critical',
    message: /NO_SERVER_AVAILABLE/,
  },
  'a round waits for workers': {
    numbers: blocked('NO_WORKER_AVAILABLE'),
    runbook: 'BroomwagonNoWorkers',
    severity: 'critical',
    message: /NO_WORKER_AVAILABLE/,
  },
};

it('finds nothing in a pool that works', () => {
  expect(findAlarms(FINE, [server('a')])).toEqual([]);
});

it.each(Object.entries(SCENARIOS))('finds one alarm, with a runbook that exists: %s', (_, scenario) => {
  const { numbers, servers = [server('a')], runbook, severity, message, sinceMs } = scenario;
  const alarms = findAlarms({ ...FINE, ...numbers }, servers);
  expect(alarms).toMatchObject([{ runbook, severity, message: expect.stringMatching(message) }]);
  if (sinceMs !== undefined) expect(alarms[0]!.sinceMs).toBe(sinceMs);
  expect(RUNBOOKS).toContain(`\n### ${runbook}\n`);
  expect(alarms[0]!.advice).not.toBe('');
});

it('lists critical alarms first', () => {
  const alarms = findAlarms({ ...FINE, paused: true, workers: 0 }, [server('a')]);
  expect(alarms.map(({ severity }) => severity)).toEqual(['critical', 'warning']);
});
