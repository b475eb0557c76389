import type {
  OpenRound,
  OverviewAlarm,
  OverviewPart,
  OverviewReply,
  ReadinessReply,
  RedisMemoryUse,
  ServerStatus,
} from '@broomwagon/contracts';

/** Everything of an overview except its alarms. */
export type PoolNumbers = Omit<OverviewReply, 'alarms'>;

const MAX_NAMED = 16;
/** Silence from which the last answer of an engine is the start of a problem, milliseconds. */
const SILENT_MS = 10_000;
/** Shares of `maxmemory`, as in the alerts BroomwagonRedisMemory and BroomwagonRedisFull. */
const MUCH_SHARE = 0.75;
const FULL_SHARE = 0.9;
/** An open round is slow from this multiple of the median of earlier rounds. */
export const SLOW_FACTOR = 2;
/** Services without which nothing is routed, or no round makes progress. */
export const NEEDED_APPS: readonly string[] = ['load-balancer', 'trainer-coordinator'];

/** Alarms of a pool, the worst alarm first. */
export function findAlarms(numbers: PoolNumbers, servers?: readonly ServerStatus[]): OverviewAlarm[] {
  const { services, redis, rounds } = numbers;
  return sortAlarms([
    ...findUnread(numbers),
    ...(services === undefined ? [] : findOfServices(services, numbers.pool)),
    ...(redis === undefined ? [] : findOfMemory(redis)),
    ...(servers === undefined ? [] : findOfServers(servers, numbers.atMs)),
    ...findOfPool(numbers),
    ...(rounds === undefined ? [] : rounds.flatMap(findOfRound)),
  ]);
}

/** Sorts alarms, critical ones first. */
export function sortAlarms(alarms: readonly OverviewAlarm[]): OverviewAlarm[] {
  return [...alarms.filter(isCritical), ...alarms.filter((alarm) => !isCritical(alarm))];
}

function isCritical({ severity }: OverviewAlarm): boolean {
  return severity === 'critical';
}

const PARTS: Record<OverviewPart, { message: string; runbook: string; advice: string }> = {
  services: {
    message: 'No service answers over NATS',
    runbook: 'BroomwagonNotReady',
    advice: 'Check NATS first, then whether the services run.',
  },
  pool: {
    message: 'The load-balancer does not answer about the pool',
    runbook: 'BroomwagonServiceMissing',
    advice: 'Check that load-balancers run and reach NATS and Redis.',
  },
  servers: {
    message: 'The load-balancer does not list the servers',
    runbook: 'BroomwagonServiceMissing',
    advice: 'Check that load-balancers run and reach NATS and Redis.',
  },
  jobs: {
    message: 'The trainer-coordinator does not list the open rounds',
    runbook: 'BroomwagonServiceMissing',
    advice: 'Check that trainer-coordinators run and reach NATS and Redis.',
  },
  redis: {
    message: 'Redis does not answer',
    runbook: 'BroomwagonNotReady',
    advice: 'Start Redis, or mend the network to it. Nothing else is needed: the services continue by themselves.',
  },
};

function findUnread({ unread }: PoolNumbers): OverviewAlarm[] {
  return unread.map(({ part, reason }) => {
    const { message, runbook, advice } = PARTS[part];
    return { runbook, severity: 'critical', message: `${message}: ${reason}`, advice };
  });
}

function findOfServices(services: readonly ReadinessReply[], pool: string): OverviewAlarm[] {
  const missing = NEEDED_APPS.filter((app) => services.every((one) => one.app !== app));
  const checks = services.flatMap(({ app, replicaId, checks: all }) =>
    all.flatMap(({ check, passes, reason }) =>
      reason === undefined ? [] : [{ app, replicaId, check, passes, reason }],
    ),
  );
  const raised = services.flatMap(({ app, alarms }) =>
    alarms === undefined
      ? []
      : alarms.flatMap((one) => (one.pool === pool || one.pool === '*' ? [{ app, ...one }] : [])),
  );
  return [
    ...missing.map((app): OverviewAlarm => ({
      runbook: 'BroomwagonServiceMissing',
      severity: 'critical',
      message: `No replica of ${app} answers`,
      advice: `Start a ${app}, or mend its link to NATS.`,
    })),
    ...checks.map(({ app, replicaId, check, passes, reason }): OverviewAlarm => ({
      runbook: 'BroomwagonNotReady',
      severity: passes ? 'warning' : 'critical',
      message: `${app} ${replicaId} is ${passes ? 'ready with a warning' : 'not ready'}: ${check}: ${reason}`,
      advice: 'The runbook says what to do for each check.',
    })),
    ...raised.map(({ app, alarm, message, sinceMs }): OverviewAlarm => ({
      runbook: 'BroomwagonAlarm',
      severity: 'critical',
      message: `Alarm ${alarm} of ${app}: ${message}`,
      advice: `The runbook says what ${alarm} means; the log of ${app} has the details.`,
      sinceMs,
    })),
  ];
}

function findOfMemory({ usedBytes, maxBytes }: RedisMemoryUse): OverviewAlarm[] {
  const share = maxBytes === undefined ? 0 : usedBytes / maxBytes;
  if (share < MUCH_SHARE) return [];
  const isFull = share >= FULL_SHARE;
  const message = `Redis uses ${Math.round(share * 100)} % of its maxmemory`;
  return [
    {
      runbook: isFull ? 'BroomwagonRedisFull' : 'BroomwagonRedisMemory',
      severity: isFull ? 'critical' : 'warning',
      message: isFull ? `${message}: submits, claims and acquires are refused` : `${message}: it stores no payloads`,
      advice: 'Raise maxmemory, cancel rounds, or drop groups of the long-tail queue.',
    },
  ];
}

/** Server states that need a person, each with the next step. */
const BROKEN: readonly { state: ServerStatus['state']; says: string; advice: string; isSilent?: true }[] = [
  {
    state: 'failed',
    says: 'no answer to probes, or fenced or quarantined by an operator',
    advice: 'Check engine and network, and restart the engine; the audit log names an operator.',
    isSilent: true,
  },
  {
    state: 'suspect',
    says: 'silent, or calls fail',
    advice: 'Check engine and network; they become ready or failed by themselves.',
    isSilent: true,
  },
  {
    state: 'quarantined',
    says: 'the weights are not the required version',
    advice: 'Load the right weights, or change the setting requiredWeightVersion.',
  },
];

function findOfServers(servers: readonly ServerStatus[], atMs: number): OverviewAlarm[] {
  const alarms: OverviewAlarm[] = BROKEN.flatMap(({ state, says, advice, isSilent }) => {
    const found = servers.filter((one) => one.state === state);
    return found.length === 0
      ? []
      : [toServerAlarm('BroomwagonNoReadyServer', found, `${state}: ${says}`, advice, isSilent && atMs)];
  });
  const hung = servers.filter((one) => one.hung);
  if (hung.length > 0) {
    const advice = 'Look at the log of the engine, and restart it; their calls continue on other servers.';
    alarms.push(
      toServerAlarm('BroomwagonServersHung', hung, 'hung: probes are answered, and no token is generated', advice),
    );
  }
  const unknown = servers.filter((one) => one.weightsUnknown);
  if (unknown.length > 0) {
    const advice = 'Load the weights again, and report their version.';
    alarms.push(toServerAlarm('BroomwagonAlarm', unknown, 'without known weights: no new requests', advice));
  }
  if (servers.every(({ state }) => state !== 'ready')) {
    alarms.unshift({
      runbook: 'BroomwagonNoReadyServer',
      severity: 'critical',
      message: servers.length === 0 ? 'The pool has no server' : `0 of ${servers.length} servers are ready`,
      advice: 'The page Fleet has the state of each server, with its reason and next step.',
    });
  }
  return alarms;
}

/** @param atMs if given, the servers are silent, and their last answer is the start of the problem */
export function toServerAlarm(
  runbook: string,
  servers: readonly ServerStatus[],
  says: string,
  advice: string,
  atMs?: number,
): OverviewAlarm {
  const serverIds = servers.slice(0, MAX_NAMED).map(({ serverId }) => serverId);
  const silentMs = Math.max(...servers.map(({ heartbeatAgeMs }) => heartbeatAgeMs));
  const named = servers.length > MAX_NAMED ? `${serverIds.join(', ')}, …` : serverIds.join(', ');
  return {
    runbook,
    severity: 'warning',
    message: `${servers.length} ${servers.length === 1 ? 'server is' : 'servers are'} ${says} (${named})`,
    advice,
    // An engine that answers was taken out by a person, at an unknown time.
    ...(atMs === undefined || silentMs < SILENT_MS ? {} : { sinceMs: atMs - silentMs }),
    serverIds,
  };
}

function findOfPool({ paused, pausedUntilMs, workers, rounds }: PoolNumbers): OverviewAlarm[] {
  const alarms: OverviewAlarm[] = [];
  if (paused) {
    const until = pausedUntilMs === undefined ? '' : ' until its deadline';
    alarms.push({
      runbook: 'BroomwagonNoGrants',
      severity: 'warning',
      message: `The pool is paused${until}: no new request gets a server`,
      advice: 'Resume the pool on the page Fleet; the audit log names who paused it.',
    });
  }
  if (workers === 0 && rounds?.some(({ state }) => state === 'open')) {
    alarms.push({
      runbook: 'BroomwagonNoWorkers',
      severity: 'critical',
      message: 'No worker is live',
      advice: 'Start workers; the logs of running ones say why they are not registered.',
    });
  }
  return alarms;
}

function findOfRound({ job, roundId, step, state, ageMs, medianMs, blockedReason }: OpenRound): OverviewAlarm[] {
  const alarms: OverviewAlarm[] = [];
  if (blockedReason !== undefined) {
    const { code, message, sinceMs } = blockedReason;
    const runbook = BLOCKED_RUNBOOKS[code];
    alarms.push({
      runbook,
      severity: 'critical',
      message: `Step ${step} of ${job} is blocked: ${code}`,
      advice: message,
      sinceMs,
      job,
      roundId,
    });
  }
  if (state === 'open' && medianMs !== undefined && ageMs > SLOW_FACTOR * medianMs) {
    alarms.push({
      runbook: 'BroomwagonStepSlow',
      severity: 'warning',
      message: `Step ${step} of ${job} is open for ${(ageMs / medianMs).toFixed(1)} times its median`,
      advice: 'The page Timeline says what the round waits for.',
      job,
      roundId,
    });
  }
  return alarms;
}

const BLOCKED_RUNBOOKS: Record<NonNullable<OpenRound['blockedReason']>['code'], string> = {
  PAYLOAD_STORE_FULL: 'BroomwagonJobBlocked',
  UNAVAILABLE: 'BroomwagonNotReady',
  STORE_FULL: 'BroomwagonRedisFull',
  NO_SERVER_AVAILABLE: 'BroomwagonNoReadyServer',
  NO_WORKER_AVAILABLE: 'BroomwagonNoWorkers',
  TRAINER_SILENT: 'BroomwagonNoProgress',
};
