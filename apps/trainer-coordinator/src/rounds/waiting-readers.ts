import { Injectable, type OnModuleDestroy } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { BroomwagonError, isBroomwagonError, type PoolName, type RoundResultsReply } from '@broomwagon/contracts';
import { MessagingClient } from '@broomwagon/messaging';
import type { RoundName } from '@broomwagon/state';

/** Pause between two reads, milliseconds. A group that this replica accepts wakes its readers at once. */
const LOOK_MS = 100;
/** Maximum parked readers; further readers get an empty page at once. */
const MAX_READERS = 1_000;

/** A parked call of `round.results`. */
export interface Reader {
  replyTo: string;
  waitMs: number;
  /** The answer when no result comes in time. */
  empty: RoundResultsReply;
  /** Reads a page; undefined while there is nothing to read. */
  look: () => Promise<RoundResultsReply | undefined>;
}

/**
 * Parked readers, which wait for the next accepted group. Readers are only in the memory of this process: if the
 * process dies, a reader gets no answer and calls again with the same cursor.
 */
@Injectable()
export class WaitingReaders implements OnModuleDestroy {
  private readonly wakers = new Map<string, Set<() => void>>();
  private readers = 0;
  private stopped = false;

  constructor(private readonly messaging: MessagingClient) {}

  /** Parks a reader. False when too many readers are parked: the caller must answer at once. */
  park(round: RoundName & { pool: PoolName }, reader: Reader): boolean {
    if (this.stopped || this.readers >= MAX_READERS) return false;
    this.readers += 1;
    void this.serve(buildRoundKey(round.pool, round), reader)
      .then((answer) => this.messaging.reply(reader.replyTo, answer))
      .finally(() => (this.readers -= 1));
    return true;
  }

  /** Wakes the readers of a round that has accepted a group or has completed. */
  wake(pool: PoolName, round: RoundName): void {
    for (const wake of this.wakers.get(buildRoundKey(pool, round)) ?? []) wake();
  }

  onModuleDestroy(): void {
    this.stopped = true;
    for (const waiting of this.wakers.values()) for (const wake of waiting) wake();
  }

  private async serve(name: string, { waitMs, empty, look }: Reader): Promise<RoundResultsReply | BroomwagonError> {
    const endsAtMs = Date.now() + waitMs;
    for (;;) {
      const leftMs = endsAtMs - Date.now();
      if (leftMs <= 0 || this.stopped) return empty;
      await this.wakened(name, Math.min(leftMs, LOOK_MS));
      try {
        const page = await look();
        if (page !== undefined) return page;
      } catch (error) {
        return isBroomwagonError(error) ? error : new BroomwagonError('INTERNAL', 'The results could not be read');
      }
    }
  }

  private async wakened(name: string, atMostMs: number): Promise<void> {
    const timer = new AbortController();
    const wake = () => timer.abort();
    const waiting = this.wakers.get(name) ?? new Set();
    this.wakers.set(name, waiting.add(wake));
    await delay(atMostMs, undefined, { signal: timer.signal }).catch(() => undefined);
    waiting.delete(wake);
    if (waiting.size === 0 && this.wakers.get(name) === waiting) this.wakers.delete(name);
  }
}

function buildRoundKey(pool: PoolName, { job, roundId }: RoundName): string {
  return `${pool}/${job}/${roundId}`;
}
