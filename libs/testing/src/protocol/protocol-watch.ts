import { isOfForeignStream } from '../foreign-stream';
import { connect, type Msg, type NatsConnection } from 'nats';
import { ProtocolCheck, type OpenRequest } from './protocol-check';

/**
 * Compares all messages over NATS in one pool with the published schemas, whoever sends them. It subscribes to every
 * subject of the pool: meanwhile a request that no service takes times out, instead of being refused at once.
 */
export class ProtocolWatch {
  private readonly open = new Map<string, OpenRequest>();
  private readonly check = new ProtocolCheck();

  private constructor(
    private readonly nats: NatsConnection,
    pool: string,
  ) {
    nats.subscribe(`rollout.v1.${pool}.>`, { callback: (error, message) => void (error ?? this.receive(message)) });
    nats.subscribe('_INBOX.>', { callback: (error, message) => void (error ?? this.receiveReply(message)) });
  }

  static async start(url: string, pool: string): Promise<ProtocolWatch> {
    const watch = new ProtocolWatch(await connect({ servers: url, name: 'protocol-watch' }), pool);
    await watch.nats.flush();
    return watch;
  }

  /** Ends the watch. @returns the mismatches, one line each, and how many bodies were compared */
  async stop(): Promise<{ mismatches: string[]; compared: number }> {
    await this.nats.drain();
    return this.check;
  }

  private receive(message: Msg): void {
    const request = this.check.sent(message.subject, message.data.length === 0 ? {} : message.json());
    if (request && message.reply) this.open.set(message.reply, request);
  }

  private receiveReply(message: Msg): void {
    const request = this.open.get(message.subject);
    // Other programs get replies too: NATS itself answers a request that nobody takes without a body, and an error in
    // this callback would end the connection.
    if (request === undefined || message.data.length === 0 || isOfForeignStream(message)) return;
    this.check.replied(request, message.json());
    this.open.delete(message.subject);
  }
}
