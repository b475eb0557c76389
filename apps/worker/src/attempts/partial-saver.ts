import { Injectable, Logger } from '@nestjs/common';
import { ControlPlane, isExpiredEpoch, toSegment, type Lease, type TokenBuffer } from '@broomwagon/generation';
import { WorkerConfig } from '../worker.config';
import type { Attempt } from './attempt';
import { isGone } from './attempt-reporter';
import { SegmentSaver } from './segment-saver';

/** Time after which a partial save is given up, milliseconds: the next save has the same tokens and more. */
const PARTIAL_SAVE_DEADLINE_MS = 5_000;

/** Partial saves of one attempt while it runs. */
export interface RunningSaves {
  /** Stops saves, and waits for the running save: no save may follow the end of the attempt. */
  stop(): Promise<void>;
}

/**
 * Reports that an attempt runs, and saves its tokens periodically. Also reports when the engine falls silent and when
 * it sends tokens again. A reply may stop the attempt.
 */
@Injectable()
export class PartialSaver {
  private readonly logger = new Logger(PartialSaver.name);

  constructor(
    private readonly controlPlane: ControlPlane,
    private readonly segments: SegmentSaver,
    private readonly config: WorkerConfig,
  ) {}

  start(attempt: Attempt, lease: Lease, tokens: TokenBuffer): RunningSaves {
    const { partialSaveIntervalMs, waitingAfterMs } = this.config;
    const lookMs = Math.min(partialSaveIntervalMs, waitingAfterMs);
    let savedTokens = 0;
    let [seenTokens, silentLooks, looks] = [0, 0, 0];
    let [isWaiting, saidWaiting] = [false, false];
    const save = async (): Promise<void> => {
      const withTokens = tokens.count > savedTokens;
      const saysWaiting = isWaiting;
      try {
        await this.save(attempt, lease, saysWaiting, withTokens ? tokens : undefined);
        saidWaiting = saysWaiting;
        savedTokens = withTokens ? tokens.count : savedTokens;
      } catch (error) {
        this.onError(attempt, error as Error);
      }
    };
    let running: Promise<void> | undefined;
    // One save at a time, and no queue: the end of the attempt waits for the running save only.
    const begin = (): void => {
      running ??= save().finally(() => (running = undefined));
    };
    begin();
    const timer = setInterval(() => {
      silentLooks = tokens.count > seenTokens ? 0 : silentLooks + 1;
      seenTokens = tokens.count;
      isWaiting = silentLooks * lookMs >= waitingAfterMs;
      const isDue = ++looks * lookMs >= partialSaveIntervalMs;
      if (isDue) looks = 0;
      if (isWaiting !== saidWaiting || (isDue && tokens.count > savedTokens)) begin();
    }, lookMs);
    return {
      stop: async () => {
        clearInterval(timer);
        await running;
      },
    };
  }

  private async save(attempt: Attempt, lease: Lease, isWaiting: boolean, tokens?: TokenBuffer): Promise<void> {
    if (attempt.isStopped) return;
    const deadlineMs = PARTIAL_SAVE_DEADLINE_MS;
    const segment = tokens && (await this.segments.save(attempt, lease, toSegment(tokens), deadlineMs));
    const { generatedMs } = attempt;
    const waiting = isWaiting || undefined;
    const run = segment && attempt.claim.boundServerId !== undefined ? attempt.run : undefined;
    const body = { ...attempt.identity, segment, serverId: lease.serverId, generatedMs, waiting, run };
    const reply = await this.controlPlane.callWithRetry('request.save', body, { deadlineMs });
    if (reply.action === 'abort') attempt.stop('cut');
  }

  private onError(attempt: Attempt, error: Error): void {
    if (isExpiredEpoch(error) || isGone(error)) attempt.stop('expired');
    else this.logger.warn(attempt.ids, `The partial save failed: ${error.message}`);
  }
}
