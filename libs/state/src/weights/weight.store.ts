import { Injectable } from '@nestjs/common';
import type {
  BeginWeightsRequest,
  CommitWeightsRequest,
  EngineDialect,
  PoolName,
  ServerId,
  WeightsStatusReply,
  WeightsStatusRequest,
  WeightSyncMode,
  WeightSyncReply,
} from '@broomwagon/contracts';
import type { AbortCommands, ServerFence } from '../aborts/abort.store';
import { transition } from '../library/function-runner';
import { createStoreClass } from '../library/store-of';

/** Arguments of a change of weights, which is rolled back if it is not committed in `deadlineMs` from now. */
export type BeginSyncArgs = Omit<BeginWeightsRequest, 'waitMs'> & { deadlineMs: number };
/** A step for an engine: to pause in this mode, or without a mode to resume. */
export interface EngineStep {
  serverId: ServerId;
  endpoint: string;
  dialect: EngineDialect;
  syncId: string;
  mode?: WeightSyncMode;
}
export interface EndSyncArgs extends CommitWeightsRequest {
  outcome: 'committed' | 'rolled-back';
  reason: 'asked' | 'deadline';
}
export interface StopPage extends AbortCommands {
  /** Servers whose requests were not ended in time. */
  fences: ServerFence[];
  cursor?: string;
}

const end = transition<EndSyncArgs & { overdueOnly: boolean }, WeightSyncReply>('weights/end');
/** Engines that must pause. `resumes`: some engines are paused, see {@link WeightStore.engineResumes}. */
export interface EnginePausesPage {
  steps: EngineStep[];
  resumes: boolean;
  cursor?: string;
}
/** Engines that must resume. */
export interface EngineResumesPage {
  steps: EngineStep[];
  /** Number of engines that could not be told to resume for a minute. */
  overdue: number;
  /** Engines that could not be told for an hour: each is listed once, to one replica. */
  givenUp: EngineStep[];
  cursor?: string;
}

const engineTold = transition<
  Pick<EngineStep, 'endpoint' | 'dialect' | 'syncId'> & { paused: boolean; lateMs: number },
  { late: boolean }
>('weights/engine-told');
/** An engine as registered: one start of the engine, or without an instanceId any process at its address. */
export type ServerStart = Pick<EngineStep, 'endpoint' | 'dialect'> & { instanceId?: string };

/** Changes of the weights of a pool: a flag that every script checks, and pages that follow it. Safe to repeat. */
@Injectable()
export class WeightStore extends createStoreClass({
  begin: transition<BeginSyncArgs, WeightSyncReply>('weights/begin'),
  /** `cursor`: `0` for the first page of servers; without a cursor no servers are read. */
  status: transition<WeightsStatusRequest, WeightsStatusReply>('weights/status'),
  /** One page of attempts and leases to stop in mode `abort`. */
  stop: transition<{ syncId: string; cursor?: string; fenceAfterMs: number }, StopPage>('weights/stop'),
  engineSteps: transition<{ cursor?: string }, EnginePausesPage>('weights/engine-steps'),
  engineResumes: transition<{ cursor?: string }, EngineResumesPage>('weights/engine-resumes'),
  /** For at most 128 engines that a replica has paused: whether each is recorded for its change and not given up. */
  engineKnown: transition<{ steps: EngineStep[] }, { recorded: boolean[] }>('weights/engine-known'),
  /** Whether the change of weights of this pool keeps the engine paused. */
  engineHeld: transition<Pick<EngineStep, 'endpoint' | 'dialect'>, { held: boolean }>('weights/engine-held'),
  /**
   * The engine that must empty its prefix cache when weights of its server, registered as `start` just now, are
   * reported. `isLoad`: other weights may have the same version; `needed`: the version counts only afterwards; `busy`:
   * requests run on the engine, so it would refuse; `beganMs`: start of the last change of weights, or 0.
   */
  staleCache: transition<
    { serverId: ServerId; weightVersion: number; isLoad?: boolean; start?: ServerStart },
    { beganMs: number; engine?: Pick<EngineStep, 'endpoint' | 'dialect'>; needed?: boolean; busy?: boolean }
  >('weights/stale-cache'),
}) {
  /**
   * @throws GENERATION_CHANGED, WEIGHT_SYNC_NOT_FOUND, WEIGHT_SYNC_ENDED, WEIGHTS_NOT_QUIESCED, JOB_NOT_FOUND, FENCED
   */
  end(pool: PoolName, args: EndSyncArgs): Promise<WeightSyncReply> {
    return this.runner.run(end, pool, { ...args, overdueOnly: false });
  }

  /** Rolls a change back after its deadline. @throws WEIGHT_SYNC_NOT_FOUND, WEIGHT_SYNC_ENDED: committed meanwhile */
  rollbackOverdue(pool: PoolName, syncId: string): Promise<WeightSyncReply> {
    return this.runner.run(end, pool, { syncId, outcome: 'rolled-back', reason: 'deadline', overdueOnly: true });
  }

  /**
   * Records that an engine was told to pause or resume. `late`: the change has ended meanwhile, so the engine must
   * resume.
   * @param lateMs maximum time of a call of an engine
   */
  engineTold(
    pool: PoolName,
    { endpoint, dialect, syncId, mode }: EngineStep,
    lateMs: number,
  ): Promise<{ late: boolean }> {
    return this.runner.run(engineTold, pool, { endpoint, dialect, syncId, paused: mode !== undefined, lateMs });
  }
}
