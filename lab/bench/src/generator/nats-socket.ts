import { createConnection, type Socket } from 'node:net';

/** Receives each message of the inbox: the last part of its subject, its body, and whether it has headers. */
export type InboxHandler = (token: string, body: string, hasHeaders: boolean) => void;

/**
 * A NATS client with requests only, as a load generator needs them; all replies go to one wildcard inbox.
 *
 * The generator has its own client because it shares the machine with the measured programs. nats.js's `request` costs
 * 40 us, five times the responder, so it would dominate the measurement; its `publish` and subscription still cost as
 * much as the responder. This client sends all requests that one chunk of replies causes in one write, and cuts text
 * instead of parsing it.
 *
 * Bodies must be ASCII: their length in characters counts as their length in bytes. No TLS, no credentials.
 */
export class NatsSocket {
  private outgoing: string[] = [];
  private rest = '';
  private flushing = false;

  private constructor(
    private readonly socket: Socket,
    private readonly inbox: string,
    private readonly onMessage: InboxHandler,
  ) {}

  /** @throws Error when the server cannot be reached or refuses */
  static async connect(url: string, onMessage: InboxHandler): Promise<NatsSocket> {
    const { hostname, port } = new URL(url);
    const socket = createConnection({ host: hostname, port: Number(port) || 4222, noDelay: true });
    const inbox = `_INBOX.bench${process.pid}x${Date.now().toString(36)}`;
    const client = new NatsSocket(socket, inbox, onMessage);
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.once('connect', () => {
        socket.write('CONNECT {"verbose":false,"pedantic":false,"headers":true,"no_responders":true}\r\n');
        socket.write(`SUB ${inbox}.* 1\r\nPING\r\n`);
      });
      client.onPong = resolve;
      socket.on('data', (chunk) => client.read(chunk.toString('latin1')));
    });
    socket.on('error', (error) => {
      throw error;
    });
    return client;
  }

  private onPong: () => void = () => undefined;

  /** Sends a request with the next flush; its reply has this token. */
  request(subject: string, token: string | number, body: string): void {
    this.outgoing.push(`PUB ${subject} ${this.inbox}.${token} ${body.length}\r\n${body}\r\n`);
    if (this.flushing) return;
    this.flushing = true;
    // The flush comes after the current chunk, so that all requests that it caused are sent together.
    process.nextTick(() => this.flush());
  }

  close(): void {
    this.socket.destroy();
  }

  private flush(): void {
    this.flushing = false;
    this.socket.write(this.outgoing.join(''), 'latin1');
    this.outgoing = [];
  }

  private read(chunk: string): void {
    const text = this.rest === '' ? chunk : this.rest + chunk;
    let at = 0;
    for (;;) {
      const endOfLine = text.indexOf('\r\n', at);
      if (endOfLine < 0) break;
      const next = this.readFrame(text, at, endOfLine);
      if (next < 0) break;
      at = next;
    }
    this.rest = text.slice(at);
  }

  /** Returns the start of the next frame; -1 when this frame is not complete yet. */
  private readFrame(text: string, start: number, endOfLine: number): number {
    const kind = text.charCodeAt(start);
    const body = endOfLine + 2;
    if (kind === LETTER.m || kind === LETTER.h) {
      // MSG <subject> <sid> <bytes>, or HMSG <subject> <sid> <header bytes> <bytes>
      const parts = text.slice(start, endOfLine).split(' ');
      const end = body + Number(parts.at(-1));
      if (end + 2 > text.length) return -1;
      const hasHeaders = kind === LETTER.h;
      const from = hasHeaders ? body + Number(parts[3]) : body;
      const token = parts[1]!.slice(this.inbox.length + 1);
      this.onMessage(token, text.slice(from, end), hasHeaders);
      return end + 2;
    }
    const line = text.slice(start, endOfLine);
    if (line === 'PING') this.socket.write('PONG\r\n');
    else if (line === 'PONG') this.onPong();
    else if (line.startsWith('-ERR')) throw new Error(`NATS: ${line}`);
    return body;
  }
}

const LETTER = { m: 'M'.charCodeAt(0), h: 'H'.charCodeAt(0) };
