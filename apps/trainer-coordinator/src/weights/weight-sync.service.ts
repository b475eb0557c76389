import { Injectable } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import {
  invalidField,
  type BeginWeightsRequest,
  type CommitWeightsRequest,
  type PoolName,
  type RollbackWeightsRequest,
  type WeightSyncReply,
} from '@broomwagon/contracts';
import { failpoint } from '@broomwagon/platform';
import { PoolDirectory, WeightStore } from '@broomwagon/state';
import { GrantService } from '../requests/grant.service';
import { WeightSweepService } from './weight-sweep.service';

const DEFAULT_DEADLINE_MS = 120_000;
/** Pauses between two looks at what still runs, milliseconds. */
const FIRST_LOOK_MS = 5;
const LONGEST_LOOK_MS = 100;

/** Changes of weights: the flag is set before anything is done about it, so that it survives this process. */
@Injectable()
export class WeightSyncService {
  constructor(
    private readonly weights: WeightStore,
    private readonly pools: PoolDirectory,
    private readonly sweeper: WeightSweepService,
    private readonly grants: GrantService,
  ) {}

  /** @throws BroomwagonError as the script `weights/begin` says, and VALIDATION_FAILED, UNAVAILABLE */
  async begin(pool: PoolName, body: BeginWeightsRequest): Promise<WeightSyncReply> {
    const { waitMs = 0, deadlineMs = DEFAULT_DEADLINE_MS, ...change } = body;
    const { syncId, mode, job, trainerEpoch } = change;
    if ((job === undefined) !== (trainerEpoch === undefined)) {
      const field = job === undefined ? 'job' : 'trainerEpoch';
      throw invalidField(field, 'job and trainerEpoch must be given together');
    }
    // Its deadline is kept by upkeep, which goes through the pools of the directory.
    await this.pools.add(pool);
    const sync = await this.weights.begin(pool, { ...change, deadlineMs });
    await failpoint('coordinator.weights.after-begin');
    if (sync.state !== 'begun') return sync;
    if (mode === 'abort' && sync.running > 0) await this.sweeper.stop(pool, syncId);
    return mode === 'keep' ? sync : this.quiesced(pool, sync, waitMs);
  }

  /** @throws BroomwagonError as the script `weights/end` says, UNAVAILABLE */
  async end(
    pool: PoolName,
    { syncId, trainerEpoch, stamp }: CommitWeightsRequest | RollbackWeightsRequest,
    outcome: 'committed' | 'rolled-back',
  ): Promise<WeightSyncReply> {
    const args = { syncId, outcome, reason: 'asked', trainerEpoch, stamp } as const;
    const sync = await this.weights.end(pool, args);
    await failpoint('coordinator.weights.after-end');
    // Parked acquires are granted by the load-balancer, which looks after its waiters every 100 ms.
    this.grants.soon(pool);
    return sync;
  }

  /** As it stands when nothing runs any more, or when the caller will wait no longer. */
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
}
