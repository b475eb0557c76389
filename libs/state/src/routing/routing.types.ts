import type {
  AcquireItem,
  CancelAcquireReply,
  Decision,
  EngineDialect,
  Epoch,
  ErrorCode,
  LoadBalancerStatus,
  RegisterServerRequest,
  ReleaseReply,
  ServerId,
  ServerState,
  ServerStatus,
  TransferLeaseRequest,
  UnservedReason,
  WorkerId,
} from '@broomwagon/contracts';

/** One acquire as the script takes it: the request, its worker, and where a parked call is answered. */
export interface AcquireEntry extends AcquireItem {
  workerId: WorkerId;
  workerEpoch: Epoch;
  /** Inbox of the caller; without it the acquire is never parked. */
  replyTo?: string;
}

/** One release as the script takes it. With `seq` only that very lease is meant. */
export interface ReleaseEntry {
  acquireId: string;
  seq?: number;
  /** For the breaker; absent when it says nothing of the server. */
  outcome?: 'finished' | 'failed';
}

/** What a caller must know of a server. */
export interface ServerAddress {
  epoch: Epoch;
  endpoint: string;
  dialect: EngineDialect;
  model?: string;
  weightVersion: number;
}
/** The servers named in a reply, each once. */
export type ServerTable = Record<ServerId, ServerAddress>;

/** A lease that was granted, with the receipt of the choice. */
export interface Granted extends Decision {
  /** Sequence of the lease: the first part of its leaseId. */
  seq: number;
  serverId: ServerId;
  /** Of its session on this server. */
  dpRank?: number;
}
/** A typed error of one item. */
export interface Refused {
  error: ErrorCode;
  /** Why there is nothing for it, for some codes. */
  reason?: UnservedReason;
}
export type AcquireResult = Granted | Refused | { parked: true };
export interface AcquireScriptReply {
  results: AcquireResult[];
  servers: ServerTable;
}

/** A transfer as the script takes it. With `seq` only that very lease is meant. */
export interface TransferEntry extends Pick<
  TransferLeaseRequest,
  'transferId' | 'workerId' | 'workerEpoch' | 'targetServerId' | 'targetEpoch'
> {
  acquireId: string;
  seq?: number;
}
/** The answers of waiters are absent in a repeat. */
export interface TransferScriptReply {
  granted: Granted;
  servers: ServerTable;
  answers?: WaiterAnswer[];
  waiterServers?: ServerTable;
  more?: boolean;
}
/** The answer of a parked acquire; whoever ran the script publishes it to `replyTo`. */
export type WaiterAnswer = { acquireId: string; replyTo: string } & (Granted | Refused);
/** What every transition that makes room may answer. */
export interface WaiterAnswers {
  answers: WaiterAnswer[];
  servers: ServerTable;
  /** Further waiters may be granted: run `grantWaiters`. */
  more: boolean;
}
export interface ReleaseScriptReply extends WaiterAnswers {
  results: ReleaseReply[];
  /** Servers that the breaker made suspect. */
  broken?: ServerId[];
}
/** The answer of the one that waited, if so, stands in `answers`. */
export interface CancelScriptReply extends WaiterAnswers {
  cancelled: boolean;
  reason: CancelAcquireReply['reason'];
  /** Of the lease, when it was granted. */
  seq?: number;
}
export interface RegisterServerScriptReply extends WaiterAnswers {
  serverId: ServerId;
  epoch: Epoch;
  state: ServerState;
}
/** A registration with its defaults filled in. */
export type ServerRegistration = Omit<RegisterServerRequest, 'capabilities' | 'labels'> & {
  weight: number;
  weightVersion?: number;
  /** JSON text. */
  capabilities?: string;
  /** JSON text. */
  labels?: string;
  /** Features its engine does not have, commas between. */
  lacks?: string;
  /** Found by a list: what was set for a known server by name goes before it. */
  discovered?: boolean;
};
export interface HeartbeatServersReply extends WaiterAnswers {
  /** What a server must have to take leases; absent: any will do. */
  requiredWeightVersion?: number;
  states: Record<ServerId, ServerState>;
  /** Failed ones that came back, under a new epoch. */
  revived: ServerId[];
}
/** All in milliseconds. */
export interface ReviewLimits {
  suspectAfterMs: number;
  failedAfterMs: number;
}
export interface ReviewServersReply extends WaiterAnswers {
  silent: number;
  watched: number;
  /** More than half are silent at once: none fails, suspects still take leases. */
  held: boolean;
  suspected: ServerId[];
  failed: ServerId[];
  next?: number;
}
export interface SweepReply {
  /** Leases returned. */
  returned: number;
  answers: WaiterAnswer[];
  servers: ServerTable;
  more: boolean;
  grantsLeft: boolean;
}
export interface ExpireWorkersReply {
  expired: WorkerId[];
  /** Why nothing expires now, if so: an alarm. */
  held?: 'outage' | 'mass';
  more: boolean;
}
export interface ExpireWaitersReply extends WaiterAnswers {
  /** Acquires still parked. */
  waiting: number;
}
export interface ServerPage {
  servers: ServerStatus[];
  /** `0` at the end. */
  cursor: string;
}
/** Totals of a pool. */
export type PoolTotals = Omit<LoadBalancerStatus, 'pool' | 'perServer'>;

/** Bounds of the routing state of a pool. */
export class RoutingBounds {
  /** Sessions kept; above it the longest idle one goes. */
  mostSessions = 200_000;
  /** Parked acquires. */
  mostWaiters = 100_000;
  /** How long the answer of a released acquire, or a tombstone, is kept, milliseconds. */
  rememberMs = 120_000;
}
/** Bounds by default. */
export const ROUTING_BOUNDS = new RoutingBounds();
