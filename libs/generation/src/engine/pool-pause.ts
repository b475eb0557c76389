import { Injectable } from '@nestjs/common';
import { ControlPlane } from '../holder/control-plane';

/** How long an answer is used for all streams, milliseconds. */
const FRESH_MS = 1_000;

/**
 * Reads whether the engines of the pool may be paused: by `pool.pause`, which each pause through a gateway calls, or
 * for a change of weights.
 */
@Injectable()
export class PoolPause {
  private last?: { atMs: number; answer: Promise<boolean> };

  constructor(private readonly controlPlane: ControlPlane) {}

  /** @throws BroomwagonError UNAVAILABLE and others of a call that failed */
  isPaused(): Promise<boolean> {
    if (this.last === undefined || Date.now() - this.last.atMs > FRESH_MS) {
      this.last = { atMs: Date.now(), answer: this.ask() };
    }
    return this.last.answer;
  }

  private async ask(): Promise<boolean> {
    const [{ paused }, { sync }] = await Promise.all([
      this.controlPlane.call('lb.status', {}),
      this.controlPlane.call('weights.status', {}),
    ]);
    return paused || sync !== undefined;
  }
}
