const MAX_PAUSE_MS = 10_000;
const FIRST_DIAL_TIMEOUT_MS = 2_000;
const MAX_DIAL_TIMEOUT_MS = 20_000;

/**
 * Pauses between dials of one lost connection, and how long each dial may take. Both grow: many clients that dial a
 * busy server at the same time, and give each dial too little time, keep it busy with handshakes and never connect.
 */
export class ReconnectPace {
  private dials = 0;

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

  /** Counts a dial. */
  countDial(): void {
    this.dials += 1;
  }

  /** Begins again, after a connection. */
  reset(): void {
    this.dials = 0;
  }

  /** Minimum time between two dials of one address, milliseconds: with jitter, at most 10,000. */
  pauseMs(): number {
    return Math.min(MAX_PAUSE_MS, this.firstPauseMs * 2 ** this.round()) * (0.5 + this.random() / 2);
  }

  /** How long the next dial may take until NATS has answered its first ping, milliseconds: 2,000 to 20,000. */
  dialTimeoutMs(): number {
    return Math.min(MAX_DIAL_TIMEOUT_MS, FIRST_DIAL_TIMEOUT_MS * 2 ** this.round());
  }

  private round(): number {
    return Math.min(16, Math.floor(this.dials / this.servers));
  }
}
