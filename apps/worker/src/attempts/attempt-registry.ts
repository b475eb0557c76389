import { EventEmitter, once } from 'node:events';
import { Injectable } from '@nestjs/common';
import type { AttemptId, Claim } from '@broomwagon/contracts';
import { HeldAttempts, type StopCause, type WorkerEpoch } from '@broomwagon/generation';
import { Attempt, attemptKey } from './attempt';

/** Maximum stops of unknown attempts that are kept. A further stop replaces the oldest stop. */
export const MAX_TOMBSTONES = 4_096;

/** All attempts of this worker, and the stops that arrived before their attempt. */
@Injectable()
export class AttemptRegistry extends HeldAttempts {
  private readonly held = new Map<string, Attempt>();
  private readonly tombstones = new Map<string, StopCause>();
  private readonly ends = new EventEmitter();

  /** Adds an attempt, and stops it if its stop arrived first. Undefined when the attempt is held already. */
  admit(claim: Claim, worker: WorkerEpoch): Attempt | undefined {
    const attempt = new Attempt(claim, worker);
    if (this.held.has(attempt.key)) return undefined;
    this.held.set(attempt.key, attempt);
    const cause = this.tombstones.get(attempt.key);
    if (cause !== undefined) {
      this.tombstones.delete(attempt.key);
      attempt.stop(cause);
    }
    return attempt;
  }

  /**
   * Stops an attempt. True when the attempt was held. Otherwise its claim may still arrive, so the stop is kept for the
   * claim.
   */
  stop(requestId: string, attempt: AttemptId, cause: StopCause): boolean {
    const key = attemptKey(requestId, attempt);
    const held = this.held.get(key);
    if (held !== undefined) {
      held.stop(cause);
      return true;
    }
    this.tombstones.delete(key);
    this.tombstones.set(key, cause);
    if (this.tombstones.size > MAX_TOMBSTONES) {
      const [oldest] = this.tombstones.keys();
      this.tombstones.delete(oldest as string);
    }
    return false;
  }

  stopAll(cause: StopCause): void {
    for (const attempt of this.held.values()) attempt.stop(cause);
  }

  /** Stops and removes all attempts of an expired epoch. */
  forgetAll(): void {
    this.stopAll('fenced');
    this.held.clear();
    this.tombstones.clear();
    this.ends.emit('end');
  }

  end(attempt: Attempt): void {
    if (this.held.get(attempt.key) === attempt) this.held.delete(attempt.key);
    this.ends.emit('end');
  }

  has(requestId: string, attempt: AttemptId): boolean {
    return this.held.has(attemptKey(requestId, attempt));
  }

  list(): Attempt[] {
    return [...this.held.values()];
  }

  get size(): number {
    return this.held.size;
  }

  /** Resolves when the next attempt ends, or when the signal is aborted. */
  async nextEnd(signal: AbortSignal): Promise<void> {
    await once(this.ends, 'end', { signal }).catch(() => undefined);
  }
}
