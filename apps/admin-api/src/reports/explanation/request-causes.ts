import type { OverviewAlarm, RequestStatus, RoundStatus, ServerId } from '@broomwagon/contracts';
import { countPlaces, listOfState, type RoundSnapshot } from './round-snapshot';

const MAX_NAMED = 16;
/** Wait for a server, or for the end of a stopped request, that is no part of the usual course, milliseconds. */
const LONG_WAIT_MS = 3_000;
const LONG_STOP_MS = 10_000;

/** Finds causes of waiting requests of an open round, unless a pause, a block or missing workers explain the wait. */
export function findOfRequests(snapshot: RoundSnapshot, round: RoundStatus): OverviewAlarm[] {
  return [
    ...findUnclaimed(snapshot, round),
    ...findWithoutServer(snapshot),
    ...findSilent(snapshot),
    ...findStopping(snapshot),
    ...findFailed(snapshot),
  ];
}

function findUnclaimed(snapshot: RoundSnapshot, { blockedReason }: RoundStatus): OverviewAlarm[] {
  const pending = listOfState(snapshot, 'pending').length;
  const { paused, workers } = snapshot.numbers;
  const isExplained = paused || blockedReason !== undefined || snapshot.sync?.state === 'begun' || workers === 0;
  if (pending === 0 || isExplained) return [];
  const live = workers === undefined ? '' : `; ${workers} workers and gateways are live`;
  return [
    {
      runbook: 'BroomwagonNoClaims',
      severity: 'warning',
      message: `${count(pending, 'request waits', 'requests wait')} for a worker${live}`,
      advice:
        'All workers run as many requests as they may: add workers and servers, or wait. A worker without requests ' +
        'hangs.',
    },
  ];
}

function findWithoutServer(snapshot: RoundSnapshot): OverviewAlarm[] {
  const waiting = listOfState(snapshot, 'claimed').filter((request) => isOlder(request, LONG_WAIT_MS));
  const room = countPlaces(snapshot);
  // Without a ready server, or in a pause, another cause explains the wait.
  if (waiting.length === 0 || room === undefined || room.servers === 0 || snapshot.numbers.paused) return [];
  const { servers, places, usedPlaces } = room;
  const free = places - usedPlaces;
  const wait = count(waiting.length, 'request waits', 'requests wait');
  const long = { severity: 'warning', sinceMs: snapshot.numbers.atMs - findLongest(waiting) } as const;
  if (free > 0) {
    return [
      {
        ...long,
        runbook: 'BroomwagonSlowAcquires',
        message: `${wait} for a server, although ${free} of ${places} places are free`,
        advice:
          'Check Redis, the load-balancers and their CPU; requests may also need a label or a model that few servers ' +
          'have.',
      },
    ];
  }
  return [
    {
      ...long,
      runbook: 'BroomwagonNoGrants',
      message: `${wait} for a server: all ${places} places of ${servers} ready servers are taken`,
      advice: 'Add servers, raise maxInflight, or wait. If no token is generated, the engines hang: restart them.',
    },
  ];
}

/** Running requests whose engine sends nothing, on servers that are not known to hang. */
function findSilent(snapshot: RoundSnapshot): OverviewAlarm[] {
  const known = new Set(snapshot.servers?.filter(isBroken).map(({ serverId }) => serverId));
  const silent = listOfState(snapshot, 'running').filter(
    ({ waiting, serverId }) => waiting && (serverId === undefined || !known.has(serverId)),
  );
  if (silent.length === 0) return [];
  const serverIds = listServers(silent);
  const get = count(silent.length, 'running request gets', 'running requests get');
  return [
    {
      runbook: 'BroomwagonServersHung',
      severity: 'warning',
      message: `${get} no tokens (${serverIds.join(', ')})`,
      advice:
        'They wait in the queue of the engine or were preempted, or the engine hangs: then read its log, and restart ' +
        'it.',
      serverIds,
    },
  ];
}

function findStopping(snapshot: RoundSnapshot): OverviewAlarm[] {
  const stopping = listOfState(snapshot, 'cutting').filter((request) => isOlder(request, LONG_STOP_MS));
  if (stopping.length === 0) return [];
  const are = count(stopping.length, 'request is', 'requests are');
  return [
    {
      runbook: 'BroomwagonAbortsUnconfirmed',
      severity: 'warning',
      message: `${are} being stopped, and no worker has confirmed it yet`,
      advice: 'They end at ABORT_DEADLINE_MS at the latest. Read the log of their worker if this repeats.',
    },
  ];
}

function findFailed({ requests = [] }: RoundSnapshot): OverviewAlarm[] {
  const failed = requests.filter(({ failures }) => failures > 0);
  if (failed.length === 0) return [];
  const have = count(failed.length, 'request has', 'requests have');
  const most = Math.max(...failed.map(({ failures }) => failures));
  return [
    {
      runbook: 'BroomwagonEnginesFailing',
      severity: 'warning',
      message: `${have} failed before, ${most} times at most`,
      advice: 'The logs of the workers have the reasons. Cordon an engine that causes them.',
    },
  ];
}

/** Whether an alarm about the server tells that its calls get no tokens. */
function isBroken({ state, hung }: { state: string; hung?: true }): boolean {
  return hung === true || state === 'failed' || state === 'suspect';
}

function listServers(requests: readonly RequestStatus[]): ServerId[] {
  const ids = requests.flatMap(({ serverId }) => (serverId === undefined ? [] : [serverId]));
  return [...new Set(ids)].slice(0, MAX_NAMED);
}

function isOlder({ ageMs }: RequestStatus, thanMs: number): boolean {
  return ageMs !== undefined && ageMs > thanMs;
}

function findLongest(requests: readonly RequestStatus[]): number {
  return Math.max(...requests.flatMap(({ ageMs }) => (ageMs === undefined ? [] : [ageMs])));
}

function count(found: number, one: string, many: string): string {
  return `${found} ${found === 1 ? one : many}`;
}
