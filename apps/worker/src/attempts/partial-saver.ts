import { setImmediate as nextTurn } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import {
  BroomwagonError,
  isBroomwagonError,
  LIMITS,
  type SaveItem,
  type SaveManyReply,
  type Segment,
} from '@broomwagon/contracts';
import { ControlPlane, isExpiredEpoch, type Lease, type TokenBuffer } from '@broomwagon/generation';
import { UndeliveredError } from '@broomwagon/messaging';
import { WorkerConfig } from '../worker.config';
import type { Attempt } from './attempt';
import { isGone } from './attempt-reporter';
import { RunningAttempt } from './running-attempt';
import { SegmentSaver } from './segment-saver';

/** Time after which a partial save is given up, milliseconds: the next save has the same tokens and more. */
const PARTIAL_SAVE_DEADLINE_MS = 5_000;
/** Refusals of a message, not of each of its saves. */
const OF_MESSAGE = ['VALIDATION_FAILED', 'PAYLOAD_TOO_LARGE', 'FORBIDDEN'] as const;

/** Partial saves of one attempt while it runs. */
export interface RunningSaves {
  /** Stops saves, and waits for the running save: no save may follow the end of the attempt. */
  stop(): Promise<void>;
}

/**
 * Reports that attempts run, and saves their tokens periodically, each save with the tokens since the one before.
 * Reports and saves that are due together are one write to the payload store and one message. Also reports when an
 * engine falls silent and when it sends tokens again. A reply may stop the attempt.
 */
@Injectable()
export class PartialSaver {
  private readonly logger = new Logger(PartialSaver.name);
  private readonly running = new Set<RunningAttempt>();
  private readonly due = new Set<RunningAttempt>();
  private timer: NodeJS.Timeout | undefined;
  private sending: Promise<void> | undefined;

  constructor(
    private readonly controlPlane: ControlPlane,
    private readonly segments: SegmentSaver,
    private readonly config: WorkerConfig,
  ) {}

  start(attempt: Attempt, lease: Lease, tokens: TokenBuffer): RunningSaves {
    const one = new RunningAttempt(attempt, lease, tokens);
    this.running.add(one);
    this.timer ??= setInterval(() => this.look(), this.lookMs);
    this.begin(one);
    return {
      stop: async () => {
        this.running.delete(one);
        this.due.delete(one);
        if (this.running.size === 0) {
          clearInterval(this.timer);
          this.timer = undefined;
        }
        await one.saving;
      },
    };
  }

  /** Saves the tokens of all attempts now, also of young ones. Never throws. */
  async saveAll(): Promise<void> {
    await Promise.all([...this.running].map(({ saving }) => saving));
    for (const one of this.running) {
      one.isDue = true;
      this.begin(one);
    }
    await this.sending;
    await Promise.all([...this.running].map(({ saving }) => saving));
  }

  private get lookMs(): number {
    return Math.min(this.config.partialSaveIntervalMs, this.config.waitingAfterMs);
  }

  private look(): void {
    for (const one of this.running) {
      one.look(this.lookMs, this.config);
      if (one.hasNews) this.begin(one);
    }
  }

  /** One save of an attempt at a time, and no queue: the end of the attempt waits for the running save only. */
  private begin(one: RunningAttempt): void {
    if (one.saving !== undefined) return;
    this.due.add(one);
    this.sending ??= this.sendDue().finally(() => (this.sending = undefined));
  }

  private async sendDue(): Promise<void> {
    do {
      // Attempts that begin in one turn of the event loop are reported together.
      await nextTurn();
      const [first] = this.due;
      const page: RunningAttempt[] = [];
      for (const one of this.due) {
        // After a new registration, a few attempts may still have the epoch before.
        if (page.length === LIMITS.page || one.attempt.worker.workerEpoch !== first!.attempt.worker.workerEpoch)
          continue;
        this.due.delete(one);
        if (!one.attempt.isStopped) page.push(one);
      }
      if (page.length === 0) continue;
      const saving = this.save(page).finally(() => {
        for (const one of page) one.saving = undefined;
      });
      for (const one of page) one.saving = saving;
    } while (this.due.size > 0);
  }

  /** Saves a page of attempts. The attempts get its errors: the method never throws. */
  private async save(page: readonly RunningAttempt[]): Promise<void> {
    const unsaved = page.filter((one) => one.hasUnsaved);
    const made = unsaved.map((one) => one.makeSegment());
    const segments = new Map<RunningAttempt, Segment | Error>();
    const stored = made.length === 0 ? [] : await this.segments.saveAll(made);
    for (const [index, one] of unsaved.entries()) segments.set(one, stored[index]!);
    const sent: RunningAttempt[] = [];
    const saves: SaveItem[] = [];
    for (const one of page) {
      const segment = segments.get(one);
      if (segment instanceof Error) {
        this.onError(one.attempt, segment);
        continue;
      }
      sent.push(one);
      saves.push(one.toSave(segment));
    }
    if (sent.length === 0) return;
    try {
      const body = { ...sent[0]!.attempt.worker, saves };
      const options = { timeoutMs: PARTIAL_SAVE_DEADLINE_MS };
      const { results } = await this.controlPlane.call('request.save-many', body, options);
      for (const [index, one] of sent.entries()) this.take(one, saves[index]!, results[index]!);
    } catch (error) {
      if (isOfMessage(error)) await Promise.all(sent.map((one) => this.saveSingly(one)));
      else for (const { attempt } of sent) this.onError(attempt, error as Error);
    }
  }

  private take(one: RunningAttempt, save: SaveItem, result: SaveManyReply['results'][number]): void {
    if ('error' in result) return this.onError(one.attempt, BroomwagonError.fromWire(result.error));
    one.take(save, result.savedTokens);
    if (result.action === 'abort') one.attempt.stop('cut');
  }

  /** Saves all tokens of one attempt with a message that the version before knows too. Never throws. */
  private async saveSingly(one: RunningAttempt): Promise<void> {
    const { attempt } = one;
    try {
      one.beginAgain();
      const [segment] = one.hasUnsaved ? await this.segments.saveAll([one.makeSegment()]) : [];
      if (segment instanceof Error) throw segment;
      const save = one.toSave(segment);
      const options = { deadlineMs: PARTIAL_SAVE_DEADLINE_MS };
      const { action } = await this.controlPlane.callWithRetry('request.save', { ...attempt.worker, ...save }, options);
      one.take(save, segment?.tokenCount ?? 0);
      if (action === 'abort') attempt.stop('cut');
    } catch (error) {
      this.onError(attempt, error as Error);
    }
  }

  private onError(attempt: Attempt, error: Error): void {
    if (isExpiredEpoch(error) || isGone(error)) attempt.stop('expired');
    else this.logger.warn({ ...attempt.ids, err: error }, 'The partial save failed');
  }
}

function isOfMessage(error: unknown): boolean {
  return error instanceof UndeliveredError || OF_MESSAGE.some((code) => isBroomwagonError(error, code));
}
