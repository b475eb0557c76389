import type { RoundStatus, ServerStatus, WeightSync } from '@broomwagon/contracts';
import { FINE, replica, server, SERVICES } from '../pool-numbers.fixture';
import type { RoundSnapshot } from './round-snapshot';
import { NOW_MS, request, ROUND, withRound } from './round-snapshot.fixture';

const withServers = (...servers: ServerStatus[]): Partial<RoundSnapshot> => ({ servers: [server('a'), ...servers] });
const blocked = (code: NonNullable<RoundStatus['blockedReason']>['code']) =>
  withRound({ blockedReason: { code, message: 'do this', sinceMs: 5 } });
const withPool = (numbers: Partial<typeof FINE>): Partial<RoundSnapshot> => ({ numbers: { ...FINE, ...numbers } });
const SYNC = {
  state: 'begun',
  version: 4,
  fromVersion: 3,
  mode: 'wait',
  servers: 8,
  confirmedServers: 2,
  startedAtMs: NOW_MS - 90_000,
  deadlineAtMs: NOW_MS + 30_000,
} as WeightSync;

/** A cause of the wait of a round, and the expected parts of its explanation. */
export interface RoundScenario {
  snapshot: Partial<RoundSnapshot>;
  /** Runbook of the cause. */
  runbook: string;
  message: RegExp;
  sinceMs?: number;
  /** Beginning of the reason of the end; by default the end is known. */
  end?: RegExp;
}
/** One row for each cause that the runbooks of docs/operations/alerts.md know. */
export const SCENARIOS: Record<string, RoundScenario> = {
  'Redis is dead': {
    snapshot: {
      numbers: { ...FINE, redis: undefined, unread: [{ part: 'redis', code: 'UNAVAILABLE', reason: 'ECONNREFUSED' }] },
      round: undefined,
      requests: undefined,
    },
    runbook: 'BroomwagonNotReady',
    message: /^Redis does not answer: ECONNREFUSED$/,
  },
  'NATS is frozen': {
    snapshot: {
      numbers: { ...FINE, services: undefined, unread: [{ part: 'services', code: 'UNAVAILABLE', reason: 'silent' }] },
      round: undefined,
      requests: undefined,
    },
    runbook: 'BroomwagonNotReady',
    message: /^No service answers over NATS/,
  },
  'the payload store is down for a worker': {
    snapshot: withPool({
      services: [
        ...SERVICES,
        replica('worker', { ready: false, checks: [{ check: 'payloads', passes: false, reason: 'EROFS' }] }),
      ],
    }),
    runbook: 'BroomwagonNotReady',
    message: /^worker one is not ready: payloads: EROFS$/,
  },
  'no load-balancer runs': {
    snapshot: withPool({ services: [replica('trainer-coordinator')] }),
    runbook: 'BroomwagonServiceMissing',
    message: /^No replica of load-balancer answers$/,
  },
  'a service has raised an alarm': {
    snapshot: withPool({
      services: [
        ...SERVICES,
        replica('load-balancer', {
          replicaId: 'two',
          alarms: [{ pool: 'p', alarm: 'servers-hung', message: 'Too many servers hang', sinceMs: 9 }],
        }),
      ],
    }),
    runbook: 'BroomwagonAlarm',
    message: /servers-hung.*Too many servers hang/,
    sinceMs: 9,
  },
  'Redis is nearly full': {
    snapshot: withPool({ redis: { usedBytes: 80, maxBytes: 100 } }),
    runbook: 'BroomwagonRedisMemory',
    message: /^Redis uses 80 % .*no payloads$/,
  },
  'Redis is full': {
    snapshot: withPool({ redis: { usedBytes: 95, maxBytes: 100 } }),
    runbook: 'BroomwagonRedisFull',
    message: /^Redis uses 95 %/,
  },
  'no server is ready': {
    snapshot: { servers: [server('a', { state: 'cordoned' })] },
    runbook: 'BroomwagonNoReadyServer',
    message: /^0 of 1 servers are ready$/,
  },
  'an engine is dead, or fenced': {
    snapshot: withServers(server('b', { state: 'failed', heartbeatAgeMs: 60_000 })),
    runbook: 'BroomwagonNoReadyServer',
    message: /^1 server is failed.*\(b\)$/,
    sinceMs: NOW_MS - 60_000,
  },
  'an engine is silent': {
    snapshot: withServers(server('b', { state: 'suspect', heartbeatAgeMs: 20_000 })),
    runbook: 'BroomwagonNoReadyServer',
    message: /^1 server is suspect/,
    sinceMs: NOW_MS - 20_000,
  },
  'a server has other weights': {
    snapshot: withServers(server('b', { state: 'quarantined' })),
    runbook: 'BroomwagonNoReadyServer',
    message: /^1 server is quarantined/,
  },
  'the weights of a server are unknown': {
    snapshot: withServers(server('b', { weightsUnknown: true })),
    runbook: 'BroomwagonAlarm',
    message: /^1 server is without known weights/,
  },
  'an operator has cordoned a server': {
    snapshot: withServers(server('b', { state: 'cordoned' }), server('c', { state: 'draining' })),
    runbook: 'BroomwagonNoReadyServer',
    message: /^2 servers are taken out of use, and takes? no new requests \(b, c\)$/,
  },
  'an engine is still loading': {
    snapshot: withServers(server('b', { state: 'pending' })),
    runbook: 'BroomwagonServerNotReady',
    message: /^1 server is pending/,
  },
  'calls of a server fail': {
    snapshot: withServers(server('b', { busyUntilMs: NOW_MS + 5_000 })),
    runbook: 'BroomwagonServersBroken',
    message: /^1 server is without new requests for a while/,
  },
  'an engine does not reset its prefix cache': {
    snapshot: withServers(server('b', { pendingWeightVersion: 4 })),
    runbook: 'BroomwagonPrefixCacheNotReset',
    message: /^1 server is without new requests until its engine has reset/,
  },
  'an engine hangs with a request': {
    snapshot: { servers: [server('a', { hung: true }), server('b')] },
    runbook: 'BroomwagonServersHung',
    message: /^1 server is hung.*\(a\)$/,
    end: /^Unknown: job\/g[67]\/0 gets no tokens/,
  },
  'an engine is dead with a request': {
    snapshot: { servers: [server('a', { state: 'failed', heartbeatAgeMs: 60_000 }), server('b')] },
    runbook: 'BroomwagonNoReadyServer',
    message: /^1 server is failed/,
    end: /^Unknown: job\/g[67]\/0 gets no tokens/,
  },
  'a request waits in its engine': {
    snapshot: { requests: [request('g6/0'), request('g7/0', { waiting: true })] },
    runbook: 'BroomwagonServersHung',
    message: /^1 running request gets no tokens \(a\)$/,
    end: /^Unknown: job\/g7\/0 gets no tokens/,
  },
  'no worker is live': {
    snapshot: { ...withPool({ workers: 0 }), requests: [request('g6/0'), request('g7/0', { state: 'pending' })] },
    runbook: 'BroomwagonNoWorkers',
    message: /^No worker is live$/,
    end: /^Unknown: job\/g7\/0 waits for a worker/,
  },
  'no worker of the kind claims': {
    snapshot: blocked('NO_WORKER_AVAILABLE'),
    runbook: 'BroomwagonNoWorkers',
    message: /^Step 7 of job is blocked: NO_WORKER_AVAILABLE$/,
  },
  'all workers are busy': {
    snapshot: { requests: [request('g6/0'), request('g7/0', { state: 'pending', ageMs: undefined })] },
    runbook: 'BroomwagonNoClaims',
    message: /^1 request waits for a worker; 1 workers and gateways are live$/,
    end: /^Unknown: job\/g7\/0 waits for a worker/,
  },
  'all servers are full': {
    snapshot: {
      servers: [server('a', { inflight: 8 })],
      requests: [request('g6/0'), request('g7/0', { state: 'claimed', serverId: undefined, ageMs: 7_000 })],
    },
    runbook: 'BroomwagonNoGrants',
    message: /^1 request waits for a server: all 8 places of 1 ready servers are taken$/,
    sinceMs: NOW_MS - 7_000,
    end: /^Unknown: job\/g7\/0 waits for a server/,
  },
  'acquires are slow': {
    snapshot: {
      requests: [request('g6/0'), request('g7/0', { state: 'claimed', serverId: undefined, ageMs: 7_000 })],
    },
    runbook: 'BroomwagonSlowAcquires',
    message: /^1 request waits for a server, although 14 of 16 places are free$/,
    end: /^Unknown: job\/g7\/0 waits for a server/,
  },
  'leases without requests take the places of others': {
    snapshot: {
      servers: [server('a', { inflight: 8, load: { running: 2, waiting: 0, ageMs: 500 } })],
      requests: [request('g6/0'), request('g7/0', { state: 'claimed', serverId: undefined, ageMs: 70_000 })],
    },
    runbook: 'BroomwagonLeaseDrift',
    message: /^1 server is with more leases than its engine has requests/,
    end: /^Unknown: job\/g7\/0 waits for a server/,
  },
  'a worker has died': {
    snapshot: withRound({ returnedAttempts: { 'worker-lost': 3 } }),
    runbook: 'BroomwagonWorkersExpired',
    message: /^3 attempts of this round ended without a sample \(worker-lost 3\)$/,
  },
  'engines fail': {
    snapshot: withRound({ returnedAttempts: { 'engine-error': 2, 'no-server': 1 } }),
    runbook: 'BroomwagonEnginesFailing',
    message: /^3 attempts of this round ended without a sample \(engine-error 2, no-server 1\)$/,
  },
  'a request fails again and again': {
    snapshot: { requests: [request('g6/0'), request('g7/0', { failures: 2 })] },
    runbook: 'BroomwagonEnginesFailing',
    message: /^1 request has failed before, 2 times at most$/,
  },
  'a service has a defect': {
    snapshot: withRound({ returnedAttempts: { internal: 1 } }),
    runbook: 'BroomwagonInternalErrors',
    message: /^1 attempt of this round ended without a sample \(internal 1\)$/,
  },
  'a worker does not confirm a stop': {
    snapshot: { requests: [request('g6/0'), request('g7/0'), request('g7/1', { state: 'cutting', ageMs: 30_000 })] },
    runbook: 'BroomwagonAbortsUnconfirmed',
    message: /^1 request is being stopped/,
    end: /^Unknown: job\/g7\/1 is being stopped/,
  },
  'the pool is paused': {
    snapshot: {
      ...withPool({ paused: true }),
      requests: [request('g6/0'), request('g7/0', { state: 'pending' })],
    },
    runbook: 'BroomwagonNoGrants',
    message: /^The pool is paused/,
    end: /^Unknown: job\/g7\/0 waits for a worker/,
  },
  'the weights change, and nobody commits': {
    snapshot: { sync: SYNC, requests: [request('g6/0'), request('g7/0', { state: 'pending' })] },
    runbook: 'BroomwagonNoProgress',
    message: /^The weights change from version 3 to 4 \(mode wait\).*: 2 of 8 servers have version 4$/,
    sinceMs: NOW_MS - 90_000,
    end: /^Unknown: job\/g7\/0 waits for a worker/,
  },
  'the payload store of the job is full': {
    snapshot: blocked('PAYLOAD_STORE_FULL'),
    runbook: 'BroomwagonJobBlocked',
    message: /^Step 7 of job is blocked: PAYLOAD_STORE_FULL$/,
    sinceMs: 5,
  },
  'the trainer is silent': {
    snapshot: blocked('TRAINER_SILENT'),
    runbook: 'BroomwagonNoProgress',
    message: /^Step 7 of job is blocked: TRAINER_SILENT$/,
    sinceMs: 5,
  },
  'the trainer has opened the round and died': {
    snapshot: { ...withRound({ acceptedGroups: 0, roundGroups: 0 }), requests: [] },
    runbook: 'BroomwagonNoProgress',
    message: /^The trainer has not submitted 8 groups of the round$/,
    sinceMs: ROUND.openedAtMs,
    end: /^Unknown: the trainer has not submitted all groups/,
  },
  'groups were lost': {
    snapshot: {
      ...withRound({
        failedGroups: 1,
        shortfallGroups: 1,
        lastFailures: [{ requestId: 'job/g1/0', reason: 'engine-rejected', message: 'too long', atMs: 1 }],
      }),
      requests: [request('g6/0')],
    },
    runbook: 'BroomwagonEnginesFailing',
    message: /^The trainer has not submitted 1 groups of the round; 1 groups failed or were dropped$/,
    end: /^Unknown: the trainer has not submitted all groups/,
  },
  'the trainer has reported no rewards': {
    snapshot: withRound({ unrewardedGroups: 4 }),
    runbook: 'BroomwagonNoProgress',
    message: /rewards of 4 accepted groups$/,
    end: /^Unknown: the round waits for rewards/,
  },
  'responses are long': {
    snapshot: { medianMs: 20_000 },
    runbook: 'BroomwagonStepSlow',
    message: /^The round is open for 3\.0 times its median, and nothing is wrong/,
    sinceMs: ROUND.openedAtMs + 20_000,
  },
};
/** Runbooks without a row, and why. */
export const WITHOUT_A_ROW: Record<string, string> = {
  BroomwagonServiceDown: 'other replicas continue; without any it is BroomwagonServiceMissing',
  BroomwagonOverloaded: 'seen in metrics; requests that wait are BroomwagonSlowAcquires',
  BroomwagonEventLoopLag: 'seen in metrics; requests that wait are BroomwagonSlowAcquires',
  BroomwagonHttpErrors: 'of the REST API',
  BroomwagonGatewayRefuses: 'of gateways',
  BroomwagonGatewayErrors: 'of gateways',
  BroomwagonControlCallsFailing: 'the weights of a server are unknown',
  BroomwagonGenerationsFailing: 'of gateways',
  BroomwagonTaskFailing: 'delays no request',
  BroomwagonRepliesRefused: 'of a caller',
  BroomwagonAuditEntriesLost: 'of the audit log',
  BroomwagonBudgetBurnsFast: 'of gateways and acquires',
  BroomwagonBudgetBurns: 'of gateways and acquires',
  BroomwagonLostEntries: 'groups were lost',
  BroomwagonMiscounts: 'the counts are corrected',
  BroomwagonServersFenced: 'an engine is dead, or fenced',
  BroomwagonEngineLeftPaused: 'a service has raised an alarm',
  BroomwagonPauseOverdue: 'the pool is paused',
  BroomwagonLedgerBound: 'of a whole job',
};
