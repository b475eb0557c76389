import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import {
  BroomwagonError,
  isBroomwagonError,
  LIMITS,
  type BeginWeightsRequest,
  type WeightSync,
  type WeightSyncReply,
} from '@broomwagon/contracts';
import { ControlPlane } from '@broomwagon/generation';
import { splitPages } from '@broomwagon/state';
import { GatewayConfig } from '../gateway.config';
import { type EngineAnswer, isDone, isRefused } from './engine-answer';

/** Prefix of the ids of changes that a gateway has begun and commits. */
const OURS = 'gateway-';
/** Maximum time for which the report of unknown weights, or the end of a change, is repeated, milliseconds. */
const END_DEADLINE_MS = 30_000;
/** Interval at which a change that another call has begun is read, milliseconds. */
const LOOK_MS = 250;

/** Runs updates of weights with a version between `weights.begin` and `weights.commit` of the pool. */
@Injectable()
export class WeightChanges {
  private readonly logger = new Logger(WeightChanges.name);

  constructor(
    private readonly controlPlane: ControlPlane,
    private readonly config: GatewayConfig,
  ) {}

  /**
   * Runs an update under a change of weights to `version`, and reports the version of each engine that has done the
   * update. An engine that has failed may have a part of the new weights: its weights are reported as unknown.
   *
   * - Pool not paused: the change begins when no request runs, and ends after the update.
   * - Pool paused: the change stays open until {@link endOpen} or an update to another version.
   * - A trainer has begun a change to this version: the update joins the change.
   * - Another call of a gateway has begun a change to this version: the update waits for the end of the change.
   * @param mode treatment of requests that run in a pool that is not paused
   * @param isAtomic engines that refuse the update keep their weights
   * @throws BroomwagonError of `weights.begin`, WEIGHTS_NOT_QUIESCED; errors of `update`
   */
  async during(
    version: number,
    { mode, isAtomic = false }: { mode: 'abort' | 'wait'; isAtomic?: boolean },
    update: () => Promise<EngineAnswer[]>,
  ): Promise<EngineAnswer[]> {
    const syncId = await this.begin(version, mode);
    let answers: EngineAnswer[];
    try {
      answers = await update();
    } catch (error) {
      // No engine was called.
      if (syncId !== undefined) await this.end('weights.rollback', syncId).catch(() => undefined);
      throw error;
    }
    // If a report fails, the change stays open: at its deadline, unreported weights become unknown.
    await this.report(answers, version, isAtomic);
    if (syncId !== undefined) await this.end(answers.some(isDone) ? 'weights.commit' : 'weights.rollback', syncId);
    return answers;
  }

  /**
   * Ends the change that updates in a paused pool have begun: commits it, or rolls it back if no server reports its
   * version.
   * @throws BroomwagonError
   */
  async endOpen(): Promise<void> {
    const { sync } = await this.controlPlane.call('weights.status', {});
    if (isOpen(sync)) await this.endAsConfirmed(sync);
  }

  /** @returns the change that ends with the update; undefined if the change stays open after the update */
  private async begin(version: number, mode: 'abort' | 'wait'): Promise<string | undefined> {
    const endsAtMs = Date.now() + this.config.controlTimeoutMs;
    const deadlineMs = this.config.pauseDeadlineMs;
    const syncId = `${OURS}${randomUUID()}`;
    for (;;) {
      const [{ paused }, { sync }] = await Promise.all([
        this.controlPlane.call('lb.status', {}),
        this.controlPlane.call('weights.status', {}),
      ]);
      if (sync?.version === version) {
        if (sync.mode === 'keep') return undefined;
        if (!sync.syncId.startsWith(OURS)) {
          await this.quiesce({ syncId: sync.syncId, version, mode: sync.mode }, endsAtMs);
          return undefined;
        }
        if (Date.now() < endsAtMs) {
          await delay(LOOK_MS);
          continue;
        }
      } else if (paused && isOpen(sync)) {
        // The trainer has corrected the version before it resumes the pool.
        await this.endAsConfirmed(sync);
        // Meanwhile another call may have corrected the version too, and begun the next change.
        continue;
      }
      try {
        if (!paused) {
          await this.quiesce({ syncId, version, mode, deadlineMs }, endsAtMs);
          return syncId;
        }
        await this.controlPlane.call('weights.begin', { syncId, version, mode: 'keep', deadlineMs });
        return undefined;
      } catch (error) {
        await this.end('weights.rollback', syncId).catch(() => undefined);
        // Another call has begun a change at the same time.
        if (sync !== undefined || !isBroomwagonError(error, 'WEIGHT_SYNC_CONFLICT')) throw error;
      }
    }
  }

  /** Begins a change, or repeats the call, and waits until no request runs. */
  private async quiesce(change: BeginWeightsRequest, endsAtMs: number): Promise<void> {
    let sync: WeightSyncReply;
    do {
      const waitMs = Math.max(0, Math.min(LIMITS.waitMs, endsAtMs - Date.now()));
      sync = await this.controlPlane.call('weights.begin', { ...change, waitMs }, { timeoutMs: waitMs + 5_000 });
      if (sync.running === 0) return;
    } while (sync.state === 'begun' && Date.now() < endsAtMs);
    throw new BroomwagonError('WEIGHTS_NOT_QUIESCED', `${sync.running} requests still run`);
  }

  /** @throws BroomwagonError when weights of an engine that has failed cannot be reported as unknown */
  private async report(answers: readonly EngineAnswer[], weightVersion: number, isAtomic: boolean): Promise<void> {
    const called = answers.filter(({ isSkipped }) => !isSkipped);
    for (const page of splitPages(called.filter((answer) => isDone(answer) || !(isAtomic && isRefused(answer))))) {
      await Promise.all(
        page.map(async (answer) => {
          const { serverId } = answer.server;
          if (isDone(answer)) await this.reportVersion(serverId, weightVersion);
          else await this.reportUnknown(serverId);
        }),
      );
    }
  }

  /** The commit quarantines a server without a reported version, until the engine reports the version. */
  private async reportVersion(serverId: string, weightVersion: number): Promise<void> {
    try {
      await this.controlPlane.call('server.update', { serverId, weightVersion });
    } catch (error) {
      this.logger.warn({ serverId, weightVersion, err: error }, 'A version was not reported');
    }
  }

  private async reportUnknown(serverId: string): Promise<void> {
    const body = { serverId, weightsUnknown: true } as const;
    try {
      await this.controlPlane.callWithRetry('server.update', body, { deadlineMs: END_DEADLINE_MS });
    } catch (error) {
      if (!isBroomwagonError(error, 'SERVER_NOT_FOUND')) throw error;
    }
  }

  private endAsConfirmed({ syncId, confirmedServers }: WeightSync): Promise<void> {
    return this.end(confirmedServers > 0 ? 'weights.commit' : 'weights.rollback', syncId);
  }

  /** Ends a change. A change that has ended meanwhile, by its deadline or an operator, stays as it is. */
  private async end(operation: 'weights.commit' | 'weights.rollback', syncId: string): Promise<void> {
    try {
      await this.controlPlane.callWithRetry(operation, { syncId }, { deadlineMs: END_DEADLINE_MS });
    } catch (error) {
      if (!isBroomwagonError(error, 'WEIGHT_SYNC_ENDED') && !isBroomwagonError(error, 'WEIGHT_SYNC_NOT_FOUND')) {
        throw error;
      }
    }
  }
}

/** Whether a change was begun by updates in a paused pool. */
function isOpen(sync: WeightSync | undefined): sync is WeightSync {
  return sync?.mode === 'keep' && sync.syncId.startsWith(OURS);
}
