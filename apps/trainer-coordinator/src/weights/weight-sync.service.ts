import { Injectable, Logger } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import {
  invalidField,
  isBroomwagonError,
  type BeginWeightsRequest,
  type CommitWeightsRequest,
  type PoolName,
  type RollbackWeightsRequest,
  type WeightSyncReply,
} from '@broomwagon/contracts';
import { failpoint } from '@broomwagon/platform';
import { PoolDirectory, WeightStore, type DueWork, type EndSyncArgs } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { GrantService } from '../grants/grant.service';
import { ServerFences } from '../commands/server-fences';
import { WorkerCommands } from '../commands/worker-commands';
import { PagedWork } from '../upkeep/paged-work';

const DEFAULT_DEADLINE_MS = 120_000;
/** Shortest and longest pause between two reads of the running requests, milliseconds. */
const FIRST_LOOK_MS = 5;
const LONGEST_LOOK_MS = 100;

/** Changes of weights. A change is recorded first, so that another replica continues it if this process dies. */
@Injectable()
export class WeightSyncService {
  private readonly logger = new Logger(WeightSyncService.name);
  private readonly stoppedAtMs = new Map<PoolName, number>();
  /** The change of each pool that this replica has ended last, and told its caller so. Redis may lose the end. */
  private readonly ended = new Map<PoolName, Pick<EndSyncArgs, 'syncId' | 'outcome' | 'reason'>>();

  constructor(
    private readonly weights: WeightStore,
    private readonly pools: PoolDirectory,
    private readonly commands: WorkerCommands,
    private readonly fences: ServerFences,
    private readonly grants: GrantService,
    private readonly metrics: CoordinatorMetrics,
    private readonly config: CoordinatorConfig,
  ) {}

  /** @throws BroomwagonError as the transition `weights/begin`, and VALIDATION_FAILED, UNAVAILABLE */
  async begin(pool: PoolName, body: BeginWeightsRequest): Promise<WeightSyncReply> {
    const { waitMs = 0, deadlineMs = DEFAULT_DEADLINE_MS, ...change } = body;
    const { syncId, mode, job, trainerEpoch } = change;
    if ((job === undefined) !== (trainerEpoch === undefined)) {
      const field = job === undefined ? 'job' : 'trainerEpoch';
      throw invalidField(field, 'job and trainerEpoch must be given together');
    }
    // The sweep enforces the deadline, and visits only pools of the directory.
    await this.pools.add(pool);
    const sync = await this.weights.begin(pool, { ...change, deadlineMs });
    await failpoint('coordinator.weights.after-begin');
    if (sync.state !== 'begun') return sync;
    if (mode === 'abort' && sync.running > 0) await this.stop(pool, syncId);
    return mode === 'keep' ? sync : this.quiesced(pool, sync, waitMs);
  }

  /** @throws BroomwagonError as the transition `weights/end`, UNAVAILABLE */
  async end(
    pool: PoolName,
    { syncId, trainerEpoch, stamp }: CommitWeightsRequest | RollbackWeightsRequest,
    outcome: 'committed' | 'rolled-back',
  ): Promise<WeightSyncReply> {
    const ended = { syncId, outcome, reason: 'asked' } as const;
    const sync = await this.weights.end(pool, { trainerEpoch, stamp, ...ended });
    this.ended.set(pool, ended);
    await failpoint('coordinator.weights.after-end');
    // Only claims are granted here: the load-balancer checks its parked acquires every 100 ms.
    this.grants.soon(pool);
    return sync;
  }

  /** Resolves with the state of the change when no request runs, or when the wait of the caller is over. */
  private async quiesced(
    pool: PoolName,
    { syncId, stamp: begun }: WeightSyncReply,
    waitMs: number,
  ): Promise<WeightSyncReply> {
    const endsAtMs = Date.now() + waitMs;
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_LOOK_MS)) {
      const { sync, stamp } = await this.weights.status(pool, { syncId, stamp: begun });
      const leftMs = endsAtMs - Date.now();
      if (sync!.running === 0 || sync!.state !== 'begun' || leftMs <= 0) return { ...sync!, stamp };
      await delay(Math.min(pauseMs, leftMs));
    }
  }

  /**
   * Continues a change. Repeats the commands to holders until all requests that must stop have stopped. Rolls the
   * change back after its deadline, also when the trainer is gone. Ends a change again whose end Redis has lost. All
   * replicas may do so at once.
   * @throws BroomwagonError UNAVAILABLE
   */
  @PagedWork({ order: 100, isDue: () => true })
  async sweep(pool: PoolName, due: DueWork): Promise<void> {
    if (!due.weightSync) {
      this.stoppedAtMs.delete(pool);
      return;
    }
    const { sync } = await this.weights.status(pool);
    if (sync === undefined || (await this.isOver(pool, sync.syncId))) return;
    const isDue = Date.now() - (this.stoppedAtMs.get(pool) ?? 0) >= this.config.cutRepeatMs;
    if (sync.running > 0 && isDue) await this.stop(pool, sync.syncId);
  }

  /** Commands all holders to stop their calls, and fences servers whose holders do not confirm in time. */
  private async stop(pool: PoolName, syncId: string): Promise<void> {
    this.stoppedAtMs.set(pool, Date.now());
    const args = { syncId, fenceAfterMs: this.config.abortDeadlineMs };
    for await (const page of this.weights.pages('stop', pool, args)) {
      this.metrics.sweepPages.inc({ kind: 'weights' });
      this.commands.abort(pool, 'cut', page.aborts);
      this.commands.abortLeases(pool, 'cut', page.leases);
      await this.fences.fence(pool, page.fences, 'weights');
      await failpoint('coordinator.weights.between-pages');
    }
  }

  private async isOver(pool: PoolName, syncId: string): Promise<boolean> {
    const lost = this.ended.get(pool);
    try {
      const isLost = lost?.syncId === syncId;
      const { state, version } = await (isLost
        ? this.weights.end(pool, lost)
        : this.weights.rollbackOverdue(pool, syncId));
      if (state === 'begun') return false;
      const message = isLost
        ? 'Redis had lost the end of a change of weights: it was ended again'
        : 'A change of weights was not committed in time and was rolled back';
      this.logger.warn({ pool, syncId, version, state }, message);
      this.grants.soon(pool);
    } catch (error) {
      // Requests that ran before the lost end run again.
      if (isBroomwagonError(error, 'WEIGHTS_NOT_QUIESCED')) return false;
      // The change was committed between the two reads.
      if (!isBroomwagonError(error) || error.retryable) throw error;
    }
    return true;
  }
}
