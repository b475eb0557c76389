import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** Direction of bytes over a link: from the client to the server, or back. */
type Direction = 'out' | 'back';

/** A fault of a link. `direction`: default both. */
export interface LinkFault {
  /** Bytes of existing connections are dropped; new connections are affected only if `hitsNew`. */
  kind: 'black-hole' | 'refuse';
  direction?: Direction;
  hitsNew?: boolean;
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
    const server = createServer();
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
    if (fault.kind === 'refuse') this.cut();
  }

  /** Ends the fault: connections whose bytes were dropped lack them, so they are closed. */
  end(): void {
    this.fault = undefined;
    this.cut();
  }

  /** Keeps the bytes of both directions on all existing connections until `release`, as a silent network does. */
  hold(): void {
    for (const socket of this.sockets) socket.pause();
  }

  /** Delivers what was held. */
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
    const upstream = connect(this.targetPort, '127.0.0.1');
    const greetsAtMs = performance.now() + this.greetingDelayMs;
    const passes = (direction: Direction) =>
      this.fault === undefined ||
      (this.fault.direction ?? direction) !== direction ||
      (place > this.faultBeganAt && this.fault.hitsNew !== true);
    client.on('data', (bytes) => passes('out') && upstream.write(bytes));
    upstream.on('data', (bytes) => {
      if (!passes('back')) return;
      const leftMs = greetsAtMs - performance.now();
      if (leftMs <= 0) client.write(bytes);
      else setTimeout(() => client.write(bytes), leftMs);
    });
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
}
