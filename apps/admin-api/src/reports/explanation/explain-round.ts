import type {
  AwaitedRequest,
  ExplainRoundReply,
  RequestStatus,
  RoundEnd,
  RoundStatus,
  RunningLengths,
  ServerStatus,
} from '@broomwagon/contracts';
import { computeLatestEnd, type LatestEnd, lengthRange, type OpenRequest, type UnknownEnd } from '@broomwagon/policies';
import { findCauses } from './round-causes';
import { computeAge, countPlaces, isOpen, listOfState, type RoundSnapshot } from './round-snapshot';

const MAX_REQUESTS = 16;
const NUMBER = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** Explains the wait of a round, from a snapshot of the round and its pool. */
export function explainRound(snapshot: RoundSnapshot): ExplainRoundReply {
  const { job, roundId, numbers, round, requests, medianMs, isPartial } = snapshot;
  const { atMs } = numbers;
  const reply: ExplainRoundReply = {
    job,
    roundId,
    atMs,
    waitsFor: describeWait(snapshot),
    causes: findCauses(snapshot),
    unread: [...snapshot.unread],
  };
  if (round === undefined) return reply;
  const { step, kind, state, openedAtMs, completedAtMs, acceptedGroups, neededGroups } = round;
  const ofRound = { step, kind, state, openedAtMs, completedAtMs, acceptedGroups, neededGroups };
  Object.assign(reply, ofRound, { ageMs: computeAge(round, atMs), medianMs });
  if (!isOpen(round)) return reply;
  const room = countPlaces(snapshot);
  if (room !== undefined) Object.assign(reply, { places: room.places, usedPlaces: room.usedPlaces });
  if (requests === undefined) {
    return { ...reply, end: { reason: 'Unknown: the requests of the round cannot be read.' } };
  }
  const awaited = listAwaited(snapshot, requests);
  return {
    ...reply,
    end: findEnd(snapshot, round, awaited),
    requestsByState: countStates(requests),
    requests: awaited.slice(0, MAX_REQUESTS).map(({ request }) => request),
    runningLengths: countLengths(listOfState(snapshot, 'running')),
    ...(isPartial ? { isPartial } : {}),
  };
}

function describeWait(snapshot: RoundSnapshot): string {
  const { round, requests } = snapshot;
  if (round === undefined) return 'Unknown: the round cannot be read.';
  const { state, settled, acceptedGroups, neededGroups } = round;
  if (state === 'closed' || state === 'cancelled') return `Nothing: the round is ${state}.`;
  if (state === 'completed') {
    const cuts = settled ? '' : ' Requests that were cut are not confirmed yet.';
    return `Nothing: the round has its groups, and the trainer has to train and close it.${cuts}`;
  }
  const groups = `${count(neededGroups - acceptedGroups)} of ${count(neededGroups)} groups`;
  if (requests === undefined) return `Waits for ${groups}; its requests cannot be read.`;
  const parts = STATES.flatMap(({ state: one, one: singular, many }) => {
    const found = listOfState(snapshot, one).length;
    return found === 0 ? [] : [`${count(found)} ${found === 1 ? singular : many}`];
  });
  const more = snapshot.isPartial ? ' of those that were read' : '';
  return `Waits for ${groups}: ${parts.length === 0 ? 'no request runs or waits' : `${parts.join(', ')}${more}`}.`;
}

const STATES: readonly { state: RequestStatus['state']; one: string; many: string }[] = [
  { state: 'running', one: 'request runs', many: 'requests run' },
  { state: 'claimed', one: 'waits for a server', many: 'wait for a server' },
  { state: 'pending', one: 'waits for a worker', many: 'wait for a worker' },
  { state: 'cutting', one: 'is being stopped', many: 'are being stopped' },
];

/** A request, and whether its engine sends it no tokens. */
interface Awaited {
  request: AwaitedRequest;
  isSilent: boolean;
}

/** Lists the requests with their delays: delayed requests first, then the oldest. */
function listAwaited({ servers }: RoundSnapshot, requests: readonly RequestStatus[]): Awaited[] {
  const byId = servers && new Map(servers.map((server) => [server.serverId, server]));
  const awaited = requests.map(({ attempt: _attempt, workerEpoch: _epoch, ...request }): Awaited => {
    const silence = findSilence(request, byId);
    const problem = silence ?? findDelay(request, byId);
    return { request: problem === undefined ? request : { ...request, problem }, isSilent: silence !== undefined };
  });
  const toOrder = ({ request: { problem, ageMs } }: Awaited) => (problem === undefined ? 0 : 1e15) + (ageMs ?? -1);
  return awaited.toSorted((one, other) => toOrder(other) - toOrder(one));
}

type Servers = ReadonlyMap<string, ServerStatus> | undefined;

/** Why a request gets no tokens; undefined if it gets tokens. */
function findSilence({ serverId, waiting }: AwaitedRequest, servers: Servers): string | undefined {
  if (serverId === undefined || servers === undefined) return waiting && 'its engine sends no tokens';
  const server = servers.get(serverId);
  if (server === undefined) return 'its server is gone';
  if (server.hung) return 'its server hangs';
  if (server.state === 'failed') return 'its server is failed';
  return waiting && 'its engine sends no tokens';
}

/** Finds a possible delay of a request that gets tokens. A suspect server may still send tokens. */
function findDelay({ serverId, failures }: AwaitedRequest, servers: Servers): string | undefined {
  if (serverId !== undefined && servers?.get(serverId)?.state === 'suspect') return 'its server is suspect';
  return failures > 0 ? `has failed before (${failures} times)` : undefined;
}

function findEnd(
  { numbers: { atMs }, isPartial }: RoundSnapshot,
  round: RoundStatus,
  awaited: readonly Awaited[],
): RoundEnd {
  const { acceptedGroups, neededGroups, pinnedGroups, unrewardedGroups, policy, openedAtMs } = round;
  const { domainQuotas, deadlineMs } = policy;
  const deadlineInMs = deadlineMs === undefined ? undefined : openedAtMs + deadlineMs - atMs;
  if (deadlineInMs === undefined && isPartial) return { reason: 'Unknown: the round has too many open requests.' };
  if (deadlineInMs === undefined && unrewardedGroups) return { reason: 'Unknown: the round waits for rewards.' };
  const end = computeLatestEnd(awaited.map(toOpenRequest), {
    missingGroups: neededGroups - acceptedGroups,
    hasReserved: pinnedGroups > 0 || domainQuotas !== undefined,
    deadlineInMs,
  });
  const { inMs, request } = end;
  return {
    ...(inMs === undefined ? {} : { byMs: Math.round(atMs + inMs) }),
    reason: describeEnd(end),
    ...(request === undefined ? {} : { requestId: request.requestId }),
  };
}

function toOpenRequest({ request, isSilent }: Awaited): OpenRequest {
  return { groupId: request.requestId.split('/')[1]!, isSilent, ...request };
}

function describeEnd(end: LatestEnd): string {
  const id = end.request?.requestId;
  if (end.inMs === undefined) return `Unknown: ${describeUnknown(end.unknown, id)}.`;
  if (end.request === undefined) return 'The deadline of the tail policy.';
  const { tokenCount, maxTokens, tokensPerSecond } = end.request;
  const speed = tokensPerSecond === undefined ? 'the median speed' : `${tokensPerSecond} tokens/s`;
  const so = `${count(tokenCount)} so far, at ${speed}`;
  return `${id} then has ${count(maxTokens!)} tokens, its limit (${so}). It may stop before.`;
}

function describeUnknown(why: UnknownEnd, id: string | undefined): string {
  return {
    groups: 'the trainer has not submitted all groups that the round needs',
    worker: `${id} waits for a worker`,
    server: `${id} waits for a server`,
    stopping: `${id} is being stopped`,
    silent: `${id} gets no tokens`,
    speed: 'no running request has reported tokens yet',
    limit: `the limit of ${id} is not known`,
  }[why];
}

function countStates(requests: readonly RequestStatus[]): ExplainRoundReply['requestsByState'] {
  const counts = new Map<RequestStatus['state'], number>();
  for (const { state } of requests) counts.set(state, (counts.get(state) ?? 0) + 1);
  return Object.fromEntries(counts);
}

function countLengths(running: readonly RequestStatus[]): RunningLengths[] {
  const ranges = new Map<number, RunningLengths>();
  for (const { tokenCount } of running) {
    const edges = lengthRange(tokenCount);
    const found = ranges.get(edges.fromTokens) ?? { ...edges, running: 0 };
    found.running += 1;
    ranges.set(edges.fromTokens, found);
  }
  return [...ranges.values()].toSorted((one, other) => one.fromTokens - other.fromTokens);
}

function count(value: number): string {
  return NUMBER.format(value);
}
