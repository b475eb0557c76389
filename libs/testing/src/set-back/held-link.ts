import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { nowMs, findSample } from './redis-history';

/** A TCP link to a server that can hold back the bytes of the server, and deliver them up to a moment of the past. */
export class HeldLink {
  private pieces: { atMs: number; bytes: Buffer }[] = [];
  private holding = false;
  private client: Socket | undefined;
  private constructor(
    private readonly server: Server,
    private readonly targetPort: number,
  ) {
    server.on('connection', (client) => this.open(client));
  }

  static async start(targetPort: number): Promise<HeldLink> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return new HeldLink(server, targetPort);
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  /** Delivers nothing more that the server sends. */
  hold(): void {
    this.holding = true;
    this.pieces = [{ atMs: nowMs(), bytes: Buffer.alloc(0) }];
  }

  /**
   * Delivers all that the server sent until that moment, then ends the link for good. Returns the moment of the last
   * piece.
   */
  end(momentMs: number): number {
    const last = findSample(this.pieces, momentMs);
    this.client?.write(Buffer.concat(this.pieces.slice(0, this.pieces.indexOf(last) + 1).map(({ bytes }) => bytes)));
    this.client?.end();
    this.server.close();
    return last.atMs;
  }

  private open(client: Socket): void {
    const upstream = connect(this.targetPort, '127.0.0.1');
    this.client = client;
    client.pipe(upstream);
    upstream.on('data', (bytes) => {
      if (this.holding) this.pieces.push({ atMs: nowMs(), bytes });
      else client.write(bytes);
    });
    // A server that dies does not end the link while it is held: `end` delivers the bytes that it sent.
    upstream.on('close', () => !this.holding && client.destroy());
    client.on('close', () => upstream.destroy());
    for (const socket of [client, upstream]) socket.on('error', () => undefined);
  }
}
