import { connect } from 'node:net';

/** Between two scouts while no server answers, milliseconds. */
const INTERVAL_MS = 2_000;
/** After a server has answered a scout, milliseconds: the login is refused, and NATS with TLS logs each scout. */
const ANSWERED_INTERVAL_MS = 10_000;
/** A server that takes longer is busy: only the dials themselves wait for it. */
const GREETING_TIMEOUT_MS = 2_000;

/** Where a server listens. */
export interface ListenAddress {
  hostname: string;
  port: number;
}

/**
 * Notices that a server of a lost link answers again, while the next dial is up to ten seconds away. NATS greets each
 * connection before TLS and the login, so a scout costs a server no more than to accept a connection.
 */
export class LinkScout {
  private timer: NodeJS.Timeout | undefined;
  private wasSilent = false;

  /**
   * @param listAddresses the addresses to try
   * @param onAnswer called when a server answers after none did: not again while each dial is refused
   */
  constructor(
    private readonly listAddresses: () => readonly ListenAddress[],
    private readonly onAnswer: () => void,
  ) {}

  /** Begins when the link is lost; nothing changes if it has begun. */
  begin(): void {
    if (this.timer !== undefined) return;
    this.wasSilent = false;
    this.later(INTERVAL_MS);
  }

  /** Ends: the link is up, or closed for good. */
  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private later(intervalMs: number): void {
    const timer = setTimeout(() => void this.scout(timer), intervalMs * (0.5 + Math.random() / 2)).unref();
    this.timer = timer;
  }

  private async scout(timer: NodeJS.Timeout): Promise<void> {
    const greetings = await Promise.all(this.listAddresses().map(isGreeted));
    if (this.timer !== timer) return;
    const isSilent = !greetings.includes(true);
    if (this.wasSilent && !isSilent) this.onAnswer();
    this.wasSilent = isSilent;
    this.later(isSilent ? INTERVAL_MS : ANSWERED_INTERVAL_MS);
  }
}

/** Whether a NATS server greets a connection to the address. */
function isGreeted({ hostname, port }: ListenAddress): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, hostname);
    socket.setTimeout(GREETING_TIMEOUT_MS, () => socket.destroy());
    socket.once('data', (bytes) => {
      resolve(bytes.toString('latin1').startsWith('INFO'));
      socket.destroy();
    });
    socket.on('error', () => resolve(false));
    socket.once('close', () => resolve(false));
  });
}
