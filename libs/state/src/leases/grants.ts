import {
  BroomwagonError,
  ERROR_CODES,
  type AcquireManyReply,
  type Decision,
  type DecisionBranch,
  type ErrorCode,
  type LeaseGrant,
  type LeaseId,
  type RoutingPolicy,
  type ServerId,
  type UnservedReason,
} from '@broomwagon/contracts';

/** The servers named in a reply, each once. */
export type ServerTable = AcquireManyReply['servers'];

/** A granted lease, with the receipt of the decision. */
export interface Granted extends Decision, Pick<LeaseGrant, 'serverId' | 'dpRank'> {
  /** Sequence of the lease: the first part of its leaseId. */
  seq: number;
}
export interface Refused {
  error: ErrorCode;
  /** Why no server takes the acquire, for some codes. */
  reason?: UnservedReason;
}

/** Answer to a parked acquire, which the caller of the transition publishes to `replyTo`. */
export type WaiterAnswer = { acquireId: string; replyTo: string } & ((Granted & { waitedMs: number }) | Refused);
/** Answers to parked acquires, in the reply of every transition that can make room. */
export interface WaiterAnswers {
  answers: WaiterAnswer[];
  servers: ServerTable;
  /** Further waiters may be granted: call {@link WaiterStore.grant}. */
  more: boolean;
}

/** Id of a lease: `<seq>.<acquireId>`. */
export function buildLeaseId(seq: number, acquireId: string): LeaseId {
  return `${seq}.${acquireId}`;
}

/** Parts of a lease id; undefined for a text that is no lease id. */
export function parseLeaseId(leaseId: LeaseId): { seq: number; acquireId: string } | undefined {
  const match = /^([1-9]\d{0,15})\.(.+)$/.exec(leaseId);
  return match ? { seq: Number(match[1]), acquireId: match[2]! } : undefined;
}

/** Reply to `lb.acquire`, from the reply of the script. */
export function toLeaseGrant(acquireId: string, granted: Granted, servers: ServerTable): LeaseGrant {
  const { seq, serverId, dpRank } = granted;
  return {
    leaseId: buildLeaseId(seq, acquireId),
    serverId,
    ...servers[serverId]!,
    ...(dpRank === undefined ? {} : { dpRank }),
    decision: toDecision(granted),
  };
}

export function toDecision(granted: Granted): Decision {
  const { policy, branch, via, inflight, policyVersion, key, best, eligible, snapshot } = granted;
  return { policy, branch, via, inflight, policyVersion, key, best, eligible, snapshot };
}

const MESSAGES: Partial<Record<ErrorCode, string>> = {
  FENCED: 'The worker epoch has expired; register again',
  VALIDATION_FAILED: 'The acquireId is in use by another live worker',
};
const KV_FULL =
  'The contexts of other sessions fill the KV memory of the servers: end sessions that take no more turns ' +
  '(lb.finish-session), begin fewer sessions at a time, or add servers';
const FIELDS: Partial<Record<ErrorCode, string>> = {
  FENCED: 'workerEpoch',
  VALIDATION_FAILED: 'acquireId',
  WORKER_NOT_FOUND: 'workerId',
  MODEL_NOT_FOUND: 'model',
  SESSION_CONFLICT: 'parentSessionId',
};
const RETRY_AFTER_MS: Partial<Record<ErrorCode, number>> = {
  NO_SERVER_AVAILABLE: 250,
  SERVERS_FULL: 250,
  POOL_PAUSED: 250,
  QUEUE_FULL: 1_000,
};

/** The typed error of a refused acquire. @param model model that the acquire names */
export function toRefusal({ error: code, reason }: Refused, model?: string): BroomwagonError {
  const message =
    code === 'MODEL_NOT_FOUND' && model !== undefined
      ? `No engine of the pool lists the model or adapter "${model}": load it, or name one of server.list (models)`
      : reason === 'kv-full'
        ? KV_FULL
        : (MESSAGES[code] ?? ERROR_CODES[code].about);
  return new BroomwagonError(code, message, {
    field: FIELDS[code],
    ...(reason === undefined ? {} : { details: { reason } }),
    retryAfterMs: RETRY_AFTER_MS[code],
  });
}

/**
 * Reads a line of the ring of decisions: seq|decidedAtMs|acquireId|serverId|inflight|branch|via|policy|version|key|
 * eligible|best, with best as `serverId=key;` for each.
 * @param brief leaves out the fields that only readers of receipts need
 */
export function parseGranted(line: string, brief: boolean): Granted {
  const [seq, , , serverId, inflight, branch, via, policy, version, key, eligible, best] = line.split('|') as [
    seq: string,
    at: string,
    acquireId: string,
    serverId: ServerId,
    inflight: string,
    branch: DecisionBranch,
    via: DecisionBranch | '',
    policy: RoutingPolicy,
    version: string,
    key: string,
    eligible: string,
    best: string,
  ];
  const granted: Granted = { seq: Number(seq), serverId, branch, inflight: Number(inflight), policy };
  if (brief) return granted;
  if (via !== '') granted.via = via;
  granted.policyVersion = Number(version);
  granted.key = Number(key);
  granted.eligible = Number(eligible);
  granted.best = parseBest(best);
  return granted;
}

function parseBest(text: string): { serverId: ServerId; key: number }[] {
  const best = [];
  for (let from = 0; from < text.length;) {
    const equals = text.indexOf('=', from);
    const end = text.indexOf(';', equals);
    best.push({ serverId: text.slice(from, equals), key: Number(text.slice(equals + 1, end)) });
    from = end + 1;
  }
  return best;
}
