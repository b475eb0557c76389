const MAX_PAUSE_MS = 10_000;
const FIRST_DIAL_TIMEOUT_MS = 2_000;
const MAX_DIAL_TIMEOUT_MS = 20_000;
/** Time after which a pause is checked again: a server that answers ends it, milliseconds. */
const CHECK_MS = 100;

/**
 * Pauses between dials of one lost connection, and how long each dial may take. Both grow: many clients that dial a
 * busy server at the same time, and give each dial too little time, keep it busy with handshakes and never connect.
 */
export class ReconnectPace {
  private dials = 0;
  private roundBeganAtMs = -Infinity;
  /** Minimum time between the beginnings of this round and the next; undefined until it is drawn. */
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

  /** Sets the number of addresses: a cluster announces others. */
  setServers(servers: number): void {
    this.servers = Math.max(1, servers);
  }

  /**
   * Returns 0 if the next address is to be dialed now, which counts as a dial, else the time after which to ask again,
   * milliseconds. Rounds begin at most 10,000 ms apart, with jitter.
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

  /** Ends the pause: a server has started to answer. */
  endPause(): void {
    this.pauseMs = 0;
  }

  /** Begins again, after a connection. */
  reset(): void {
    this.dials = 0;
    this.pauseMs = undefined;
  }

  /** How long the next dial may take until NATS has answered its first ping, milliseconds: 2,000 to 20,000. */
  dialTimeoutMs(): number {
    return Math.min(MAX_DIAL_TIMEOUT_MS, FIRST_DIAL_TIMEOUT_MS * 2 ** this.round());
  }

  private round(): number {
    return Math.min(16, Math.floor(this.dials / this.servers));
  }
}
