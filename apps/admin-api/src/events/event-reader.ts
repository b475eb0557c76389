import type { PoolEvent } from '@broomwagon/contracts';
import { drained } from '@broomwagon/platform';
import type { Response } from 'express';

/** Bytes of a waiting event besides its text. */
const WAITING_EVENT_BYTES = 256;
/** Time without a read after which a reader is cut off if it catches up or has ended, milliseconds. */
const STALLED_MS = 10_000;

/**
 * Why a reader was cut off.
 * - `unread`: it had too many unread bytes.
 * - `stalled`: it read nothing while it caught up.
 * - `behind`: too many bytes of new events waited while it caught up.
 */
export type CutReason = 'unread' | 'stalled' | 'behind';

interface Waiting {
  sequence: number;
  event: PoolEvent;
  text: string;
}

/** One open stream of server-sent events, with a bounded buffer. */
export class EventReader {
  /** New events that wait while the reader catches up; undefined after it has caught up. */
  private waiting: Waiting[] | undefined = [];
  private waitingBytes = 0;
  private lastSequence = 0;

  constructor(
    private readonly response: Response,
    private readonly accepts: (event: PoolEvent) => boolean,
    private readonly mostUnreadBytes: () => number,
    private readonly onCut: (reason: CutReason) => void,
  ) {}

  /** @param after place in the stream that the caller learns; undefined: not known, or the caller has sent the place */
  begin(after?: number): void {
    this.response.status(200).set({
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no',
    });
    this.response.flushHeaders();
    if (after === undefined) this.beat();
    else this.response.write(`id: ${after}\n\n`);
  }

  /** Sends a comment, which shows to both sides that a quiet connection is alive. */
  beat(): void {
    if (!this.isGone) this.response.write(':\n\n');
  }

  end(): void {
    this.response.end();
    // Without this, a caller that does not read would keep its connection.
    setTimeout(() => this.response.destroy(), STALLED_MS).unref();
  }

  /** Sends a stored event. @returns false if the reader is gone */
  async replay(sequence: number, event: PoolEvent, text: string): Promise<boolean> {
    this.write(sequence, event, text);
    if (!this.isGone && this.response.writableNeedDrain) {
      await drained(this.response, STALLED_MS, () => this.cut('stalled'));
    }
    return !this.isGone;
  }

  /**
   * Ends the replay of stored events: sends the waiting events, then the comment line `:live`, then each new event.
   */
  async live(): Promise<void> {
    for (let next = this.waiting?.shift(); next !== undefined; next = this.waiting?.shift()) {
      this.waitingBytes -= next.text.length + WAITING_EVENT_BYTES;
      if (!(await this.replay(next.sequence, next.event, next.text))) return;
    }
    this.waiting = undefined;
    if (!this.isGone) this.response.write(':live\n\n');
  }

  /** Sends or queues an event that has just happened. */
  offer(sequence: number, event: PoolEvent, text: string): void {
    if (this.waiting === undefined) {
      this.write(sequence, event, text);
      return;
    }
    this.waiting.push({ sequence, event, text });
    this.waitingBytes += text.length + WAITING_EVENT_BYTES;
    if (this.waitingBytes + this.response.writableLength > this.mostUnreadBytes()) this.cut('behind');
  }

  private get isGone(): boolean {
    return this.response.destroyed || this.response.writableEnded;
  }

  private write(sequence: number, event: PoolEvent, text: string): void {
    if (this.isGone || sequence <= this.lastSequence) return;
    this.lastSequence = sequence;
    if (!this.accepts(event)) return;
    this.response.write(`id: ${sequence}\nevent: ${event.type}\ndata: ${text}\n\n`);
    if (this.response.writableLength > this.mostUnreadBytes()) this.cut('unread');
  }

  private cut(reason: CutReason): void {
    if (this.response.destroyed) return;
    this.onCut(reason);
    this.waiting = undefined;
    this.response.destroy();
  }
}
