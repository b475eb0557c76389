import { connect } from 'node:net';

/** Interval of probes while no server takes connections, milliseconds. */
const INTERVAL_MS = 2_000;
/**
 * Interval of probes while a server takes connections and refuses the login, milliseconds. The interval is long,
 * because NATS with TLS logs each probe.
 */
const TAKEN_INTERVAL_MS = 10_000;
/** Longest wait for the greeting of a server. A slower server is busy, and only real dials wait for it. */
const ANSWER_TIMEOUT_MS = 2_000;
/** Maximum length of a greeting. A program that sends more is no NATS server. */
const MAX_GREETING_BYTES = 65_536;

/** Address on which a server listens. */
export interface ListenAddress {
  hostname: string;
  port: number;
}

/**
 * Notices that a server of a lost link takes connections again, because the next dial may be ten seconds away. NATS
 * greets each connection before TLS and the login, so a probe costs a server one accepted connection.
 */
export class LinkProbe {
  private timer: NodeJS.Timeout | undefined;

  /**
   * @param listAddresses the addresses to try
   * @param onTaken called after each probe that a server has taken
   */
  constructor(
    private readonly listAddresses: () => readonly ListenAddress[],
    private readonly onTaken: () => void,
  ) {}

  /** Starts the probes after the link is lost, if they have not started. */
  begin(): void {
    if (this.timer !== undefined) return;
    this.later(INTERVAL_MS);
  }

  /** Ends the probes, because the link is up or closed for good. */
  stop(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private later(intervalMs: number): void {
    const timer = setTimeout(() => void this.probe(timer), intervalMs * (0.5 + Math.random() / 2)).unref();
    this.timer = timer;
  }

  private async probe(timer: NodeJS.Timeout): Promise<void> {
    const taken = await Promise.all(this.listAddresses().map(isTaken));
    if (this.timer !== timer) return;
    const isTakenAnywhere = taken.includes(true);
    if (isTakenAnywhere) this.onTaken();
    this.later(isTakenAnywhere ? TAKEN_INTERVAL_MS : INTERVAL_MS);
  }
}

/**
 * Whether a NATS server takes connections at the address, and bytes pass both ways. The server must send a greeting
 * without an error (for example of a full server), and close the connection after this end is closed.
 */
function isTaken({ hostname: host, port }: ListenAddress): Promise<boolean> {
  return new Promise((resolve) => {
    let received = '';
    const socket = connect({ host, port, allowHalfOpen: true });
    socket.setTimeout(ANSWER_TIMEOUT_MS, () => socket.destroy());
    socket.on('data', (bytes) => {
      received += bytes.toString('latin1');
      if (received.includes('\r\n') || received.length > MAX_GREETING_BYTES) socket.end();
    });
    socket.once('end', () => {
      resolve(received.startsWith('INFO') && !received.includes('\r\n-ERR'));
      socket.destroy();
    });
    socket.on('error', () => resolve(false));
    socket.once('close', () => resolve(false));
  });
}
