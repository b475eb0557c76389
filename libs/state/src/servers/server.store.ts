import { Injectable } from '@nestjs/common';
import {
  type EngineCapabilities,
  type Epoch,
  type FenceServerReply,
  type Labels,
  newEpoch,
  type ReconcileServerReply,
  type ServerChangeReply,
  type ServerId,
} from '@broomwagon/contracts';
import { transition, FunctionRunner } from '../library/function-runner';
import { ROUTING_BOUNDS, RoutingBounds, type WaiterAnswers } from '../routing/routing.types';

type Bounded<Args> = Args & { mostSessions: number };

/** What `server.update` changes; what is absent stays. */
export interface ServerUpdate {
  serverId: ServerId;
  maxInflight?: number;
  weight?: number;
  weightVersion?: number;
  labels?: Labels;
  capabilities?: EngineCapabilities;
  /** Features its engine does not have, commas between. */
  lacks?: string;
  /** Only while this is its epoch. */
  epoch?: Epoch;
  /** What its engine says of itself, from a probe, and the word for its weights that was known when it was asked. */
  said?: EngineWord & { knownWeightVersion?: number };
}
/** A later start than is known is a restart: a new epoch with unknown weights. */
export interface EngineWord {
  /** The engine's own time, seconds. */
  startedAtSeconds?: number;
  /**
   * Of its weights; counts when it has changed, unless another one was noted meanwhile. -1: it has no number for them.
   */
  weightVersion?: number;
}
export type ServerChange = ServerChangeReply & WaiterAnswers;
export type ReconciledPage = ReconcileServerReply & WaiterAnswers & { cursor: string };

/** What an engine said of its own load. */
export interface LoadReport {
  serverId: ServerId;
  epoch: Epoch;
  running: number;
  waiting: number;
  /** 0 to 1. */
  kvUse?: number;
  /** Since the engine started. */
  preemptions?: number;
  /** Tokens of waiting requests that are not in its prefix cache. */
  uncachedTokens?: number;
}
/** A server whose capacity is to be decided anew, by this caller only. */
export interface DueLimit {
  serverId: ServerId;
  epoch: Epoch;
  /** Most leases now. */
  limit: number;
  maxInflight: number;
  inflight: number;
  running: number;
  waiting: number;
  kvUse?: number;
  /** Since the last decision. */
  newPreemptions: number;
}
export interface ReportLoadsReply {
  /** Leases less what the engine has in hand. */
  drifts: { serverId: ServerId; drift: number }[];
  due: DueLimit[];
}
/** A decision of adaptive concurrency; passed over when the epoch or `from` is not current any more. */
export interface LimitChange {
  serverId: ServerId;
  epoch: Epoch;
  from: number;
  to: number;
}

const SCRIPTS = {
  update: transition<
    Bounded<
      Omit<ServerUpdate, 'labels' | 'capabilities'> & { labels?: string; capabilities?: string; newEpoch: Epoch }
    >,
    ServerChange
  >('servers/update'),
  cordon: transition<Bounded<{ serverId: ServerId; cordoned: boolean }>, ServerChange>('servers/cordon'),
  drain: transition<Bounded<{ serverId: ServerId; deadlineMs: number }>, ServerChange>('servers/drain'),
  fence: transition<{ serverId: ServerId; epoch: Epoch; newEpoch: Epoch; reason: string }, FenceServerReply>(
    'servers/fence',
  ),
  reconcile: transition<Bounded<{ serverId: ServerId; epoch?: Epoch; cursor: string }>, ReconciledPage>(
    'servers/reconcile',
  ),
  endDrains: transition<
    { offset: number; rememberMs: number },
    { removed: { serverId: ServerId; leases: number }[]; next?: number }
  >('servers/end-drains'),
  warm: transition<Bounded<object>, WaiterAnswers & { warming: number }>('servers/warm'),
  rescore: transition<Bounded<{ cursor: string }>, WaiterAnswers & { cursor: string }>('servers/rescore'),
  reportLoads: transition<{ reports: LoadReport[] }, ReportLoadsReply>('servers/report-loads'),
  limit: transition<Bounded<{ limits: LimitChange[] }>, WaiterAnswers & { limited: ServerId[] }>('servers/limit'),
};

/** A drained server that a list still finds stays away for this long, or until it starts anew. */
const DRAINED_STAYS_AWAY_MS = 3_600_000;

/** What is asked of servers by name, and how much they may take: one method, one script. */
@Injectable()
export class ServerStore {
  constructor(
    private readonly runner: FunctionRunner,
    private readonly bounds: RoutingBounds = ROUTING_BOUNDS,
  ) {}

  /** @throws BroomwagonError SERVER_NOT_FOUND, FENCED */
  update(pool: string, { labels, capabilities, ...rest }: ServerUpdate): Promise<ServerChange> {
    return this.runner.run(SCRIPTS.update, pool, {
      ...rest,
      labels: labels == null ? undefined : JSON.stringify(labels),
      capabilities: capabilities && JSON.stringify(capabilities),
      newEpoch: newEpoch(),
      mostSessions: this.bounds.mostSessions,
    });
  }

  /** `false` also takes a drain back. @throws BroomwagonError SERVER_NOT_FOUND */
  cordon(pool: string, serverId: ServerId, cordoned: boolean): Promise<ServerChange> {
    return this.runner.run(SCRIPTS.cordon, pool, { serverId, cordoned, mostSessions: this.bounds.mostSessions });
  }

  /** @param deadlineMs from now @throws BroomwagonError SERVER_NOT_FOUND */
  drain(pool: string, serverId: ServerId, deadlineMs: number): Promise<ServerChange> {
    return this.runner.run(SCRIPTS.drain, pool, { serverId, deadlineMs, mostSessions: this.bounds.mostSessions });
  }

  /**
   * The epoch is expired as if the server had failed, until it starts anew. @throws BroomwagonError SERVER_NOT_FOUND
   */
  fence(pool: string, serverId: ServerId, epoch: Epoch, reason: string): Promise<FenceServerReply> {
    return this.runner.run(SCRIPTS.fence, pool, { serverId, epoch, newEpoch: newEpoch(), reason });
  }

  /**
   * One page of its leases: returns those of expired worker epochs, asks live holders for a sync; begin with cursor
   * `0`, which also ends it.
   * @throws BroomwagonError SERVER_NOT_FOUND, FENCED
   */
  reconcile(pool: string, serverId: ServerId, cursor: string, epoch?: Epoch): Promise<ReconciledPage> {
    const { mostSessions } = this.bounds;
    return this.runner.run(SCRIPTS.reconcile, pool, { serverId, epoch, cursor, mostSessions });
  }

  /** One page of removing what has drained; begin with offset 0. */
  endDrains(
    pool: string,
    offset: number,
  ): Promise<{ removed: { serverId: ServerId; leases: number }[]; next?: number }> {
    return this.runner.run(SCRIPTS.endDrains, pool, { offset, rememberMs: DRAINED_STAYS_AWAY_MS });
  }

  /** Lets at most 128 servers in slow start take what they may by now. */
  warm(pool: string): Promise<WaiterAnswers & { warming: number }> {
    return this.runner.run(SCRIPTS.warm, pool, { mostSessions: this.bounds.mostSessions });
  }

  /** One page of putting servers where changed settings say; begin with cursor `0`, which also ends it. */
  rescore(pool: string, cursor: string): Promise<WaiterAnswers & { cursor: string }> {
    return this.runner.run(SCRIPTS.rescore, pool, { cursor, mostSessions: this.bounds.mostSessions });
  }

  /** At most 128 reports; of unknown servers and other epochs they are passed over. */
  reportLoads(pool: string, reports: LoadReport[]): Promise<ReportLoadsReply> {
    return this.runner.run(SCRIPTS.reportLoads, pool, { reports });
  }

  /** At most 128 changes. */
  limit(pool: string, limits: LimitChange[]): Promise<WaiterAnswers & { limited: ServerId[] }> {
    return this.runner.run(SCRIPTS.limit, pool, { limits, mostSessions: this.bounds.mostSessions });
  }
}
