import { Injectable } from '@nestjs/common';
import {
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
import { transition, type NewEpoch } from '../library/function-runner';
import { storeOf } from '../library/store-of';
import type { WaiterAnswers } from '../leases/grants';

/** What a probe finds. */
interface Found {
  /** Features that the engine does not have, separated by commas. */
  lacks?: string;
  /** Models and adapters that its engine lists. */
  models?: readonly string[];
}
/** A registration with its defaults filled in. */
export interface ServerRegistration extends RegisterServerRequest, Found {
  weight: number;
  /** The endpoint as the caller wrote it: servers of earlier versions are stored with such a spelling. */
  writtenEndpoint?: string;
  /** Found by a list: what was set for a known server by name goes before it. */
  discovered?: boolean;
  /** Identity of the engine in the list: the uid of its pod, else the id of the server. */
  listedAs?: string;
}
export interface RegisteredServer extends WaiterAnswers, RegisterServerReply {}

/** What `server.update` or a probe changes; what is absent stays. */
export interface ServerUpdate extends UpdateServerRequest, Found {
  capabilities?: EngineCapabilities;
  /** First model that the engine lists; counts for a server that has none, or whose model the engine does not list. */
  model?: string;
  /** The engine has just described itself in its dialect: a pending or failed server is ready. */
  isDescribed?: boolean;
  /** Only while this is its epoch. */
  epoch?: Epoch;
  /** Report of its engine, and the reported weight version that was known at the probe. */
  report?: EngineReport & { knownWeightVersion?: number };
  /** Weight version whose engine has not emptied its prefix cache: no leases until it has, or it is reported again. */
  pendingVersion?: number;
  /** The engine has emptied its prefix cache, as asked by `weights/stale-cache` with this `beganMs`. */
  emptiedSinceMs?: number;
}
/** A later start than the known one, or other models, is a restart: a new epoch with unknown weights. */
export interface EngineReport {
  /** Start of the engine by its own clock, seconds. */
  startedAtSeconds?: number;
  /**
   * Version of its weights; counts if it has changed, unless another one was stored meanwhile. -1: it has no number.
   */
  weightVersion?: number;
  /** Models and adapters that it lists. */
  models?: readonly string[];
}
export type ServerChange = ServerChangeReply & WaiterAnswers;
export type ReconciledPage = ReconcileServerReply & WaiterAnswers;

export interface HeartbeatResult extends WaiterAnswers, Pick<ServerHeartbeatReply, 'requiredWeightVersion'> {
  /** States of those that are registered. */
  states: Record<ServerId, ServerState>;
  /** Pending and failed servers that are ready only when their engines have described themselves. */
  unproven: ServerId[];
}
/** All in milliseconds. */
export interface ReviewLimits {
  suspectAfterMs: number;
  failedAfterMs: number;
  /** Absent or 0: a server that answers probes is never taken for a hung one. */
  silentAfterMs?: number;
}
export interface ReviewedServers extends WaiterAnswers {
  silent: number;
  watched: number;
  /** More than half are silent at once: none fails, suspects still take leases. */
  held: boolean;
  suspected: ServerId[];
  failed: ServerId[];
  /** Calls got no tokens though their engines answer; `held`: they stay where they are, since too few are left. */
  hung: { serverId: ServerId; epoch: Epoch; silentMs: number; held: boolean }[];
  cursor?: number;
}
export interface RemovedServers {
  removed: { serverId: ServerId; leases: number }[];
  cursor?: number;
}

/** A load report of an engine. */
export interface LoadReport extends Omit<ServerLoadReport, 'ageMs'>, Pick<ServerStatus, 'serverId' | 'epoch'> {
  /** Tokens of waiting requests that are not in its prefix cache. */
  uncachedTokens?: number;
  /** Its own count of tokens since it started. */
  tokens?: number;
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
  cursor?: string;
}
/** Stored as JSON text: cjson would write an empty list as an object. */
type WithTexts<T extends object> = Omit<T, 'labels' | 'capabilities' | 'models'> & {
  labels?: string;
  capabilities?: string;
  models?: string;
};

const TRANSITIONS = {
  register: transition<WithTexts<ServerRegistration> & NewEpoch, RegisteredServer>('servers/register', {
    hasNewEpoch: true,
  }),
  heartbeat: transition<{ serverIds: ServerId[]; epoch?: Epoch; weightVersion?: number }, HeartbeatResult>(
    'servers/heartbeat',
  ),
  update: transition<Omit<WithTexts<ServerUpdate>, 'report'> & { report?: object } & NewEpoch, ServerChange>(
    'servers/update',
    { hasNewEpoch: true },
  ),
};

/** The registry of servers, their states and capacities. */
@Injectable()
export class ServerStore extends storeOf({
  /** One page, in no order; or only one server. */
  list: transition<Cursor & { serverId?: ServerId }, ListServersReply>('servers/list'),
  remove: transition<{ serverId: ServerId }, RemoveServerReply>('servers/remove'),
  /** `cordoned` false also takes a drain back. */
  cordon: transition<{ serverId: ServerId; cordoned: boolean }, ServerChange>('servers/update'),
  /** `deadlineMs`: from now. */
  drain: transition<{ serverId: ServerId; deadlineMs: number; listedAs?: string }, ServerChange>('servers/update'),
  /** No source lists its engine as ready: no new leases until it is listed, and registered, again. */
  withhold: transition<{ serverId: ServerId; listedAs: string; withheld: true }, ServerChange>('servers/update'),
  /** Lets at most 128 servers in slow start take what they may by now. */
  warm: transition<object, WaiterAnswers & { warming: number }>('servers/warm'),
  /** One page of the silent servers: suspect, then failed. */
  review: transition<ReviewLimits & NewEpoch & { cursor?: number }, ReviewedServers>('servers/review', {
    hasNewEpoch: true,
  }),
  /** The epoch is expired as if the server had failed, until it starts again. */
  fence: transition<FenceServerRequest & NewEpoch, FenceServerReply>('servers/fence', { hasNewEpoch: true }),
  /** One page of its leases: returns those of expired worker epochs, asks live holders for a sync. */
  reconcile: transition<ReconcileServerRequest, ReconciledPage>('servers/reconcile'),
  /** One page of removing what has drained. */
  endDrains: transition<{ cursor?: number }, RemovedServers>('servers/end-drains'),
  /** One page of scoring servers by changed settings. */
  rescore: transition<Cursor, WaiterAnswers & Cursor>('servers/rescore'),
  /** At most 128 reports; those of unknown servers and other epochs are ignored. */
  reportLoads: transition<{ reports: LoadReport[] }, ReportLoadsReply>('servers/report-loads'),
  /** At most 128 changes. */
  limit: transition<{ limits: LimitChange[] }, WaiterAnswers & { limited: ServerId[] }>('servers/limit'),
}) {
  register(pool: string, registration: ServerRegistration): Promise<RegisteredServer> {
    return this.runner.run(TRANSITIONS.register, pool, withTexts(registration));
  }

  /** A server's own heartbeat. @throws BroomwagonError SERVER_NOT_FOUND or FENCED */
  heartbeat(pool: string, { serverId, ...fields }: ServerHeartbeatRequest): Promise<HeartbeatResult> {
    return this.runner.run(TRANSITIONS.heartbeat, pool, { serverIds: [serverId], ...fields });
  }

  /** At most 128 servers whose endpoints answered a probe; pending and failed ones are answered as `unproven`. */
  recordProbes(pool: string, serverIds: ServerId[]): Promise<HeartbeatResult> {
    return this.runner.run(TRANSITIONS.heartbeat, pool, { serverIds });
  }

  /** @throws BroomwagonError SERVER_NOT_FOUND */
  async get(pool: string, serverId: ServerId): Promise<ServerStatus> {
    const { servers } = await this.list(pool, { serverId });
    return servers[0]!;
  }

  /** @throws BroomwagonError SERVER_NOT_FOUND, FENCED */
  update(pool: string, update: ServerUpdate): Promise<ServerChange> {
    const { report } = update;
    const reported = report && { ...report, models: report.models?.join('\n') };
    return this.runner.run(TRANSITIONS.update, pool, { ...withTexts(update), report: reported });
  }
}

function withTexts<T extends Pick<ServerUpdate, 'labels' | 'capabilities' | 'models'>>(fields: T): WithTexts<T> {
  const { labels, capabilities, models, ...rest } = fields;
  return {
    ...rest,
    labels: labels && JSON.stringify(labels),
    capabilities: capabilities && JSON.stringify(capabilities),
    models: models?.join('\n'),
  };
}
