/** Most ticks that one step may make up for. */
const MAX_STEP_TICKS = 5;

/**
 * Converts wall time into simulated time for one engine. Simulated time may not jump: when the process was delayed by
 * more than maxStepMs, the rest is lost rather than made up for, because all clients would see responses that
 * "finished" in such a jump too late. The time lost while the engine had work is the clock lag.
 */
export class WallClock {
  private lastMs: number;
  private busyMs = 0;
  private lostMs = 0;

  constructor(
    public speed: number,
    private readonly maxStepMs: number,
    nowMs: number,
  ) {
    this.lastMs = nowMs;
  }

  /** Returns the simulated seconds since the last step. */
  step(nowMs: number, busy: boolean): number {
    const elapsedMs = Math.max(0, nowMs - this.lastMs);
    this.lastMs = nowMs;
    if (!busy) return (elapsedMs / 1e3) * this.speed;
    const usedMs = Math.min(elapsedMs, this.maxStepMs);
    this.busyMs += elapsedMs;
    this.lostMs += elapsedMs - usedMs;
    return (usedMs / 1e3) * this.speed;
  }

  /** Share of the busy wall time by which simulated time fell behind, 0 to 1. */
  get lagShare(): number {
    return this.busyMs === 0 ? 0 : this.lostMs / this.busyMs;
  }
}

/** Creates a clock that starts now, for one engine or a group; `speed` in simulated seconds per wall second. */
export function newClock({ speed, tickMs }: { speed: number; tickMs: number }, nowMs: number): WallClock {
  return new WallClock(speed, MAX_STEP_TICKS * tickMs, nowMs);
}
