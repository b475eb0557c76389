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
import { createStoreClass } from '../library/store-of';
import type { WaiterAnswers } from '../leases/grants';

/** Features and models that a probe finds. */
interface Found {
  /** Features that the engine lacks, separated by commas. */
  lacks?: string;
  /** Models and adapters that the engine lists. */
  models?: readonly string[];
}
/** A registration with its defaults filled in. */
export interface ServerRegistration extends RegisterServerRequest, Found {
  weight: number;
  /** The endpoint as the caller wrote it, because earlier versions have stored servers with such spellings. */
  writtenEndpoint?: string;
  /** The server was found by a list: values set by name for a known server take precedence. */
  discovered?: boolean;
  /** Identity of the engine in the list: the uid of its pod, else the id of the server. */
  listedAs?: string;
}
export interface RegisteredServer extends WaiterAnswers, RegisterServerReply {}

/** A change by `server.update` or a probe. Absent fields stay as they are. */
export interface ServerUpdate extends UpdateServerRequest, Found {
  capabilities?: EngineCapabilities;
  /** First model that the engine lists; counts for a server that has none, or whose model the engine does not list. */
  model?: string;
  /** The engine has just described itself in its dialect: a pending or failed server is ready. */
  isDescribed?: boolean;
  /** The change applies only while this is the epoch of the server. */
  epoch?: Epoch;
  /** Report of the engine, and the reported weight version that was known at the probe. */
  report?: EngineReport & { knownWeightVersion?: number };
  /** Weight version for which the engine must empty its prefix cache, or be reported again, before it takes leases. */
  pendingVersion?: number;
  /** The engine has emptied its prefix cache, as asked by `weights/stale-cache` with this `beganMs`. */
  emptiedSinceMs?: number;
}
/** Report of an engine. A later start than the known start, or other models, is a restart with unknown weights. */
export interface EngineReport {
  /** Start of the engine by its own clock, seconds. */
  startedAtSeconds?: number;
  /**
   * Version of the engine's weights. A changed version counts, unless another version was stored meanwhile. -1: the
   * engine reports no number.
   */
  weightVersion?: number;
  /** Models and adapters that the engine lists. */
  models?: readonly string[];
}
export type ServerChange = ServerChangeReply & WaiterAnswers;
export type ReconciledPage = ReconcileServerReply & WaiterAnswers;

export interface HeartbeatResult extends WaiterAnswers, Pick<ServerHeartbeatReply, 'requiredWeightVersion'> {
  states: Record<ServerId, ServerState>;
  /** Pending and failed servers that are ready only when their engines have described themselves. */
  unproven: ServerId[];
}
/** Limits of silence, milliseconds. */
export interface ReviewLimits {
  suspectAfterMs: number;
  failedAfterMs: number;
  /**
   * Time without tokens after which a server counts as hung. Absent or 0: a server that answers probes is never hung.
   */
  silentAfterMs?: number;
}
export interface ReviewedServers extends WaiterAnswers {
  silent: number;
  watched: number;
  /** More than half of the servers are silent at once: none fails, and suspects still take leases. */
  held: boolean;
  suspected: ServerId[];
  failed: ServerId[];
  /** Servers that answer, but whose calls get no tokens. `held`: the calls stay, because too few servers are left. */
  hung: { serverId: ServerId; epoch: Epoch; silentMs: number; held: boolean }[];
  cursor?: number;
}
export interface RemovedServers {
  removed: { serverId: ServerId; leases: number }[];
  cursor?: number;
}

export interface LoadReport extends Omit<ServerLoadReport, 'ageMs'>, Pick<ServerStatus, 'serverId' | 'epoch'> {
  /** Tokens of waiting requests that are not in the prefix cache of the engine. */
  uncachedTokens?: number;
  /** Count of generated tokens of the engine since its start. */
  tokens?: number;
}
/** A server with a capacity that only this caller decides now. */
export interface DueLimit
  extends
    Pick<ServerStatus, 'serverId' | 'epoch' | 'maxInflight' | 'inflight'>,
    Pick<ServerLoadReport, 'running' | 'waiting' | 'kvUse'> {
  /** Maximum leases now. */
  limit: number;
  /** Preemptions since the last decision. */
  newPreemptions: number;
}
export interface ReportLoadsReply {
  /** Leases minus running and waiting requests of the engine. */
  drifts: { serverId: ServerId; drift: number }[];
  due: DueLimit[];
}
/** A decision of adaptive concurrency. Ignored when the epoch or `from` is no longer current. */
export interface LimitChange {
  serverId: ServerId;
  epoch: Epoch;
  from: number;
  to: number;
}

interface Cursor {
  cursor?: string;
}
/** Fields as texts of JSON or lines, because cjson would write an empty list as an object. */
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
export class ServerStore extends createStoreClass({
  /** One page of servers in no order, or a single server. */
  list: transition<Cursor & { serverId?: ServerId; limit?: number }, ListServersReply>('servers/list'),
  remove: transition<{ serverId: ServerId }, RemoveServerReply>('servers/remove'),
  /** Cordons a server, or ends a cordon or a drain. */
  cordon: transition<{ serverId: ServerId; cordoned: boolean }, ServerChange>('servers/update'),
  /** Drains a server. `deadlineMs` counts from now. */
  drain: transition<{ serverId: ServerId; deadlineMs: number; listedAs?: string }, ServerChange>('servers/update'),
  /** Gives a server no new leases: no source lists its engine as ready. Being listed and registered again ends this. */
  withhold: transition<{ serverId: ServerId; listedAs: string; withheld: true }, ServerChange>('servers/update'),
  /** Raises the capacities of at most 128 servers in slow start, and grants the new room. */
  warm: transition<object, WaiterAnswers & { warming: number }>('servers/warm'),
  /** Reviews one page of the silent servers, which become suspect, then failed. */
  review: transition<ReviewLimits & NewEpoch & { cursor?: number }, ReviewedServers>('servers/review', {
    hasNewEpoch: true,
  }),
  /** Expires the epoch of a server as if the server had failed, until it starts again. */
  fence: transition<FenceServerRequest & NewEpoch, FenceServerReply>('servers/fence', { hasNewEpoch: true }),
  /** Checks one page of the leases of a server: returns leases of expired epochs, asks live holders for a sync. */
  reconcile: transition<ReconcileServerRequest, ReconciledPage>('servers/reconcile'),
  endDrains: transition<{ cursor?: number }, RemovedServers>('servers/end-drains'),
  /** Scores one page of servers by changed settings. */
  rescore: transition<Cursor, WaiterAnswers & Cursor>('servers/rescore'),
  /** Stores at most 128 reports. Reports of unknown servers and other epochs are ignored. */
  reportLoads: transition<{ reports: LoadReport[] }, ReportLoadsReply>('servers/report-loads'),
  /** Applies at most 128 changes of capacities. */
  limit: transition<{ limits: LimitChange[] }, WaiterAnswers & { limited: ServerId[] }>('servers/limit'),
}) {
  register(pool: string, registration: ServerRegistration): Promise<RegisteredServer> {
    return this.runner.run(TRANSITIONS.register, pool, withTexts(registration));
  }

  /** A server's own heartbeat. @throws BroomwagonError SERVER_NOT_FOUND or FENCED */
  heartbeat(pool: string, { serverId, ...fields }: ServerHeartbeatRequest): Promise<HeartbeatResult> {
    return this.runner.run(TRANSITIONS.heartbeat, pool, { serverIds: [serverId], ...fields });
  }

  /** Records that at most 128 servers answered a probe. Pending and failed servers are returned as `unproven`. */
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
