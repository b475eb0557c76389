const MAX_PAUSE_MS = 10_000;
const FIRST_DIAL_TIMEOUT_MS = 2_000;
const MAX_DIAL_TIMEOUT_MS = 20_000;
/** Interval of checks whether a pause has ended, milliseconds. */
const CHECK_MS = 100;

/**
 * Computes pauses between dials of a lost connection, and timeouts of dials. Both times grow. Otherwise many clients
 * could keep a busy server busy with handshakes that time out, and never connect.
 */
export class ReconnectPace {
  private dials = 0;
  private roundBeganAtMs = -Infinity;
  /** Minimum time from the beginning of this round to the next; undefined until drawn. */
  private pauseMs: number | undefined;

  /**
   * @param servers number of addresses: each round dials all of them
   * @param firstPauseMs pause between the first two rounds, milliseconds
   * @param random number in [0, 1)
   */
  constructor(
    private servers: number,
    private readonly firstPauseMs: number,
    private readonly random: () => number = Math.random,
  ) {}

  /** Sets the number of addresses, which changes when a cluster announces addresses. */
  setServers(servers: number): void {
    this.servers = Math.max(1, servers);
  }

  /**
   * Returns 0 if the next address is to be dialed now, and counts the dial; otherwise the time until the next call,
   * milliseconds. Pauses of rounds are at most 10,000 ms, with jitter.
   */
  nextWaitMs(nowMs: number): number {
    if (this.dials % this.servers === 0) {
      const maxMs = Math.max(MAX_PAUSE_MS, this.firstPauseMs);
      this.pauseMs ??= Math.min(maxMs, this.firstPauseMs * 2 ** this.round()) * (0.5 + this.random() / 2);
      const leftMs = this.roundBeganAtMs + this.pauseMs - nowMs;
      if (leftMs > 0) return Math.min(CHECK_MS, leftMs);
      this.roundBeganAtMs = nowMs;
      this.pauseMs = undefined;
    }
    this.dials += 1;
    return 0;
  }

  /** Ends the pause, because a server answers. */
  endPause(): void {
    this.pauseMs = 0;
  }

  /** Starts again with short times, after a connection. */
  reset(): void {
    this.dials = 0;
    this.pauseMs = undefined;
  }

  /** Returns the maximum duration of the next dial, up to the answer to its first ping: 2,000 to 20,000 ms. */
  dialTimeoutMs(): number {
    return Math.min(MAX_DIAL_TIMEOUT_MS, FIRST_DIAL_TIMEOUT_MS * 2 ** this.round());
  }

  private round(): number {
    return Math.min(16, Math.floor(this.dials / this.servers));
  }
}
