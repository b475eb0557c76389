import type { OverviewAlarm, RequestStatus, ServerStatus } from '@broomwagon/contracts';
import { toServerAlarm } from '../overview-alarms';
import { listOfState, type RoundSnapshot } from './round-snapshot';

/** Age up to which a load report of an engine is compared with its leases, milliseconds. */
const FRESH_MS = 10_000;
/** Leases without a request count from this share of the mean leases of a server, as in BroomwagonLeaseDrift. */
const DRIFT_SHARE = 0.25;
/** Fewest leases without a request: calls begin and end between two reports. */
const MIN_DRIFT = 2;
/** Wait of a request for a server from which such leases matter, milliseconds. */
const LONG_WAIT_MS = 60_000;

/** States of servers that take no new requests and raise no alarm of the overview, because nobody has to act. */
const WITHHELD: readonly { states: ServerStatus['state'][]; runbook: string; says: string; advice: string }[] = [
  {
    states: ['cordoned', 'draining'],
    runbook: 'BroomwagonNoReadyServer',
    says: 'taken out of use, and takes no new requests',
    advice: 'Undrain or uncordon a server that is needed; the audit log names who took it out.',
  },
  {
    states: ['pending'],
    runbook: 'BroomwagonServerNotReady',
    says: 'pending: the engine has not answered yet',
    advice: 'Wait for the engine to load its model, or read its log.',
  },
];

/** Servers that take no new requests, or fewer than they could. Broken servers are alarms of the overview. */
export function findOfServers(snapshot: RoundSnapshot): OverviewAlarm[] {
  const { servers = [], numbers } = snapshot;
  const toAlarm = (runbook: string, found: readonly ServerStatus[], says: string, advice: string): OverviewAlarm[] =>
    found.length === 0 ? [] : [toServerAlarm(runbook, found, says, advice)];
  const ready = servers.filter(({ state }) => state === 'ready');
  const busy = ready.filter(({ busyUntilMs }) => busyUntilMs !== undefined && busyUntilMs > numbers.atMs);
  const unreset = servers.filter(({ pendingWeightVersion }) => pendingWeightVersion !== undefined);
  return [
    ...WITHHELD.flatMap(({ states, runbook, says, advice }) =>
      toAlarm(
        runbook,
        servers.filter(({ state }) => states.includes(state)),
        says,
        advice,
      ),
    ),
    ...toAlarm(
      'BroomwagonServersBroken',
      busy,
      'without new requests for a while: its engine was busy, or its calls failed',
      'Read the log of the engine if this repeats.',
    ),
    ...toAlarm(
      'BroomwagonPrefixCacheNotReset',
      unreset,
      'without new requests until its engine has reset its prefix cache',
      'Check the engine: the load-balancer asks for the reset at each probe.',
    ),
    ...toAlarm(
      'BroomwagonLeaseDrift',
      findDrift(ready, snapshot),
      'with more leases than its engine has requests: holders that run nothing take its places',
      'If this lasts for minutes, reconcile the server.',
    ),
  ];
}

/** Servers with unused leases, while requests of the round wait for a server for long. */
function findDrift(ready: readonly ServerStatus[], snapshot: RoundSnapshot): ServerStatus[] {
  const isLong = ({ ageMs }: RequestStatus) => ageMs !== undefined && ageMs > LONG_WAIT_MS;
  if (!listOfState(snapshot, 'claimed').some(isLong)) return [];
  const mean = ready.reduce((sum, { inflight }) => sum + inflight, 0) / Math.max(1, ready.length);
  return ready.filter(
    ({ load, inflight }) =>
      load !== undefined &&
      load.ageMs <= FRESH_MS &&
      inflight - load.running - load.waiting > Math.max(MIN_DRIFT, DRIFT_SHARE * mean),
  );
}
