import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** Direction of bytes over a link: from the client to the server, or back. */
type Direction = 'out' | 'back';

/** A fault of a link. `direction`: default both. */
export interface LinkFault {
  /**
   * `black-hole`: bytes of existing connections are dropped; new connections are affected only if `hitsNew`.
   * `refuse`: connections are closed, and new ones are refused. `delay`: bytes arrive `delayMs` later. `cut`: the
   * existing connections are closed once.
   */
  kind: 'black-hole' | 'refuse' | 'delay' | 'cut';
  direction?: Direction;
  hitsNew?: boolean;
  /** Delay of the bytes for `delay`, milliseconds. */
  delayMs?: number;
}

/** A TCP relay to a server on 127.0.0.1, whose connections can be dropped, refused, delayed and cut. */
export class FaultyLink {
  private readonly sockets = new Set<Socket>();
  private fault: LinkFault | undefined;
  private faultBeganAt = 0;
  private connections = 0;
  /** Time after which the first bytes of the server reach a new connection, milliseconds. */
  greetingDelayMs = 0;

  private constructor(
    private readonly server: Server,
    private readonly targetPort: number,
  ) {
    server.on('connection', (client) => this.open(client));
  }

  static async start(targetPort: number): Promise<FaultyLink> {
    const server = createServer({ allowHalfOpen: true });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new FaultyLink(server, targetPort);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Connections accepted since the start. */
  get accepted(): number {
    return this.connections;
  }

  /** Begins a fault. */
  begin(fault: LinkFault): void {
    this.fault = fault;
    this.faultBeganAt = this.connections;
    if (fault.kind === 'refuse' || fault.kind === 'cut') this.cut();
  }

  /** Ends the fault: connections whose bytes were dropped lack them, so they are closed. */
  end(): void {
    const kind = this.fault?.kind;
    this.fault = undefined;
    if (kind === 'black-hole' || kind === 'refuse') this.cut();
  }

  /** Keeps the bytes of both directions on all existing connections until `release`, as a silent network does. */
  hold(): void {
    for (const socket of this.sockets) socket.pause();
  }

  /** Delivers the bytes that were held. */
  release(): void {
    for (const socket of this.sockets) socket.resume();
  }

  /** Closes all connections once. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }

  private open(client: Socket): void {
    const place = ++this.connections;
    if (this.fault?.kind === 'refuse') {
      client.destroy();
      return;
    }
    const upstream = connect({ port: this.targetPort, host: '127.0.0.1', allowHalfOpen: true });
    const greetsAtMs = performance.now() + this.greetingDelayMs;
    this.relay(client, upstream, 'out', place, 0);
    this.relay(upstream, client, 'back', place, greetsAtMs);
    for (const [one, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      this.sockets.add(one);
      one.on('error', () => undefined);
      one.on('close', () => {
        this.sockets.delete(one);
        other.destroy();
      });
    }
  }

  /** Passes bytes, and their end, on in their order, each at its time. */
  private relay(from: Socket, to: Socket, direction: Direction, place: number, notBeforeMs: number): void {
    // A queue: a timer that is late on a busy machine lets no later bytes overtake.
    const queue: { atMs: number; send: () => void }[] = [];
    const flush = (): void => {
      while (queue.length > 0 && queue[0]!.atMs <= performance.now()) queue.shift()!.send();
      if (queue.length > 0) setTimeout(flush, queue[0]!.atMs - performance.now());
    };
    const pass = (send: () => void): void => {
      const { kind, delayMs = 0 } = this.findFault(direction, place) ?? {};
      if (kind === 'black-hole') return;
      const atMs = Math.max(notBeforeMs, performance.now() + (kind === 'delay' ? delayMs : 0));
      queue.push({ atMs, send });
      if (queue.length === 1) flush();
    };
    from.on('data', (bytes) => pass(() => to.write(bytes)));
    from.on('end', () => pass(() => to.end()));
  }

  /** The fault that hits these bytes now. @param place number of the connection, from 1 */
  private findFault(direction: Direction, place: number): LinkFault | undefined {
    const { fault } = this;
    if (fault === undefined || (fault.direction ?? direction) !== direction) return undefined;
    const isExempt = fault.kind === 'black-hole' && place > this.faultBeganAt && fault.hitsNew !== true;
    return isExempt ? undefined : fault;
  }
}
