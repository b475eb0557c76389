import { Injectable } from '@nestjs/common';
import {
  newEpoch,
  type EngineCapabilities,
  type Epoch,
  type FenceServerReply,
  type FenceServerRequest,
  type ListServersReply,
  type ReconcileServerReply,
  type ReconcileServerRequest,
  type RegisterServerReply,
  type RegisterServerRequest,
  type RemoveServerReply,
  type ServerChangeReply,
  type ServerHeartbeatReply,
  type ServerHeartbeatRequest,
  type ServerId,
  type ServerLoadReport,
  type ServerState,
  type ServerStatus,
  type UpdateServerRequest,
} from '@broomwagon/contracts';
import { transition } from '../library/function-runner';
import { scanPages } from '../library/scan-pages';
import { storeOf } from '../library/store-of';
import type { WaiterAnswers } from '../waiters/waiter.store';

/** Features that the engine of a server does not have, separated by commas. */
interface Lacking {
  lacks?: string;
}
/** A registration with its defaults filled in. */
export interface ServerRegistration extends RegisterServerRequest, Lacking {
  weight: number;
  /** Found by a list: what was set for a known server by name goes before it. */
  discovered?: boolean;
}
export interface RegisteredServer extends WaiterAnswers, RegisterServerReply {}

/** What `server.update` or a probe changes; what is absent stays. */
export interface ServerUpdate extends UpdateServerRequest, Lacking {
  capabilities?: EngineCapabilities;
  /** Only while this is its epoch. */
  epoch?: Epoch;
  /** What its engine reports, and the report of its weights that was known when it was asked. */
  said?: EngineWord & { knownWeightVersion?: number };
}
/** A later start than the known one is a restart: a new epoch with unknown weights. */
export interface EngineWord {
  /** The engine's own time, seconds. */
  startedAtSeconds?: number;
  /**
   * Of its weights; counts when it has changed, unless another one was noted meanwhile. -1: it has no number for them.
   */
  weightVersion?: number;
}
export type ServerChange = ServerChangeReply & WaiterAnswers;
export type ReconciledPage = ReconcileServerReply & WaiterAnswers & Cursor;

export interface HeardServers extends WaiterAnswers, Pick<ServerHeartbeatReply, 'requiredWeightVersion'> {
  /** Of those that are registered. */
  states: Record<ServerId, ServerState>;
  /** Failed servers that came back, under a new epoch. */
  revived: ServerId[];
}
/** All in milliseconds. */
export interface ReviewLimits {
  suspectAfterMs: number;
  failedAfterMs: number;
}
export interface ReviewedServers extends WaiterAnswers {
  silent: number;
  watched: number;
  /** More than half are silent at once: none fails, suspects still take leases. */
  held: boolean;
  suspected: ServerId[];
  failed: ServerId[];
  /** Where the next page begins. */
  next?: number;
}
export interface RemovedServers {
  removed: { serverId: ServerId; leases: number }[];
  /** Where the next page begins. */
  next?: number;
}

/** A load report of an engine. */
export interface LoadReport extends Omit<ServerLoadReport, 'ageMs'>, Pick<ServerStatus, 'serverId' | 'epoch'> {
  /** Tokens of waiting requests that are not in its prefix cache. */
  uncachedTokens?: number;
}
/** A server whose capacity is to be decided now, by this caller only. */
export interface DueLimit
  extends
    Pick<ServerStatus, 'serverId' | 'epoch' | 'maxInflight' | 'inflight'>,
    Pick<ServerLoadReport, 'running' | 'waiting' | 'kvUse'> {
  /** Maximum leases now. */
  limit: number;
  /** Since the last decision. */
  newPreemptions: number;
}
export interface ReportLoadsReply {
  /** Leases minus running and waiting requests of the engine. */
  drifts: { serverId: ServerId; drift: number }[];
  due: DueLimit[];
}
/** A decision of adaptive concurrency; ignored when the epoch or `from` is not current any more. */
export interface LimitChange {
  serverId: ServerId;
  epoch: Epoch;
  from: number;
  to: number;
}

interface Cursor {
  /** `0` to begin, and at the end. */
  cursor: string;
}
/** Stored as JSON text: cjson would write an empty list as an object. */
type WithTexts<T extends object> = Omit<T, 'labels' | 'capabilities'> & { labels?: string; capabilities?: string };

const TRANSITIONS = {
  register: transition<WithTexts<ServerRegistration> & { newEpoch: Epoch }, RegisteredServer>('servers/register'),
  heartbeat: transition<{ serverIds: ServerId[]; epoch?: Epoch; weightVersion?: number }, HeardServers>(
    'servers/heartbeat',
  ),
  review: transition<ReviewLimits & { offset: number; newEpoch: Epoch }, ReviewedServers>('servers/review'),
  list: transition<Cursor & { serverId?: ServerId }, Cursor & { servers: ServerStatus[] }>('servers/list'),
  update: transition<WithTexts<ServerUpdate> & { newEpoch: Epoch }, ServerChange>('servers/update'),
  fence: transition<Required<FenceServerRequest> & { newEpoch: Epoch }, FenceServerReply>('servers/fence'),
  reconcile: transition<ReconcileServerRequest & Cursor, ReconciledPage>('servers/reconcile'),
  endDrains: transition<{ offset: number; rememberMs: number }, RemovedServers>('servers/end-drains'),
};

/** A drained server that a list still finds stays away for this long, or until it starts again. */
const DRAINED_STAYS_AWAY_MS = 3_600_000;

/** The registry of servers, their states and capacities. */
@Injectable()
export class ServerStore extends storeOf({
  remove: transition<{ serverId: ServerId }, RemoveServerReply>('servers/remove'),
  /** `cordoned` false also takes a drain back. */
  cordon: transition<{ serverId: ServerId; cordoned: boolean }, ServerChange>('servers/update'),
  /** `deadlineMs`: from now. */
  drain: transition<{ serverId: ServerId; deadlineMs: number }, ServerChange>('servers/update'),
  /** Lets at most 128 servers in slow start take what they may by now. */
  warm: transition<object, WaiterAnswers & { warming: number }>('servers/warm'),
  /** One page of scoring servers by changed settings; begin with cursor `0`, which also ends it. */
  rescore: transition<Cursor, WaiterAnswers & Cursor>('servers/rescore'),
  /** At most 128 reports; those of unknown servers and other epochs are ignored. */
  reportLoads: transition<{ reports: LoadReport[] }, ReportLoadsReply>('servers/report-loads'),
  /** At most 128 changes. */
  limit: transition<{ limits: LimitChange[] }, WaiterAnswers & { limited: ServerId[] }>('servers/limit'),
}) {
  register(pool: string, registration: ServerRegistration): Promise<RegisteredServer> {
    return this.runner.run(TRANSITIONS.register, pool, { ...withTexts(registration), newEpoch: newEpoch() });
  }

  /** A server's own heartbeat. @throws BroomwagonError SERVER_NOT_FOUND or FENCED */
  heartbeat(pool: string, { serverId, ...heard }: ServerHeartbeatRequest): Promise<HeardServers> {
    return this.runner.run(TRANSITIONS.heartbeat, pool, { serverIds: [serverId], ...heard });
  }

  /** At most 128 servers whose endpoints answered a probe. */
  heardFrom(pool: string, serverIds: ServerId[]): Promise<HeardServers> {
    return this.runner.run(TRANSITIONS.heartbeat, pool, { serverIds });
  }

  /** One page of the servers that were not heard of: suspect, then failed; begin with offset 0. */
  review(pool: string, limits: ReviewLimits, offset: number): Promise<ReviewedServers> {
    return this.runner.run(TRANSITIONS.review, pool, { ...limits, offset, newEpoch: newEpoch() });
  }

  /** @throws BroomwagonError SERVER_NOT_FOUND */
  async get(pool: string, serverId: ServerId): Promise<ServerStatus> {
    const { servers } = await this.list(pool, '0', serverId);
    return servers[0]!;
  }

  /** One page, in no order; or only one server. */
  async list(pool: string, from = '0', serverId?: ServerId): Promise<ListServersReply> {
    const { servers, cursor } = await this.runner.run(TRANSITIONS.list, pool, { cursor: from, serverId });
    return { servers, ...(cursor === '0' ? {} : { cursor }) };
  }

  /** All servers of the pool, page by page. */
  async *pages(pool: string): AsyncGenerator<ServerStatus[]> {
    const load = (cursor: string) => this.runner.run(TRANSITIONS.list, pool, { cursor });
    for await (const { servers } of scanPages(load)) yield servers;
  }

  /** @throws BroomwagonError SERVER_NOT_FOUND, FENCED */
  update(pool: string, update: ServerUpdate): Promise<ServerChange> {
    return this.runner.run(TRANSITIONS.update, pool, { ...withTexts(update), newEpoch: newEpoch() });
  }

  /**
   * The epoch is expired as if the server had failed, until it starts again. @throws BroomwagonError SERVER_NOT_FOUND
   */
  fence(pool: string, serverId: ServerId, epoch: Epoch, reason: string): Promise<FenceServerReply> {
    return this.runner.run(TRANSITIONS.fence, pool, { serverId, epoch, reason, newEpoch: newEpoch() });
  }

  /**
   * One page of its leases: returns those of expired worker epochs, asks live holders for a sync; begin with cursor
   * `0`, which also ends it.
   * @throws BroomwagonError SERVER_NOT_FOUND, FENCED
   */
  reconcile(pool: string, { cursor = '0', ...request }: ReconcileServerRequest): Promise<ReconciledPage> {
    return this.runner.run(TRANSITIONS.reconcile, pool, { ...request, cursor });
  }

  /** One page of removing what has drained; begin with offset 0. */
  endDrains(pool: string, offset: number): Promise<RemovedServers> {
    return this.runner.run(TRANSITIONS.endDrains, pool, { offset, rememberMs: DRAINED_STAYS_AWAY_MS });
  }
}

function withTexts<T extends Pick<ServerUpdate, 'labels' | 'capabilities'>>(fields: T): WithTexts<T> {
  const { labels, capabilities, ...rest } = fields;
  return {
    ...rest,
    labels: labels && JSON.stringify(labels),
    capabilities: capabilities && JSON.stringify(capabilities),
  };
}
