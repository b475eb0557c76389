import type { Msg } from 'nats';

/**
 * Result of a handler that has parked the call. The transport sends no reply, and frees the slot of the call. The
 * process that answers later calls `MessagingClient.reply(replyTo, ...)`.
 */
export const PARKED: unique symbol = Symbol('broomwagon.parked');

/** Context that `@Ctx()` gives a handler: subject, pool and reply subject of the message. */
export class MessageContext {
  constructor(
    private readonly message: Pick<Msg, 'subject'>,
    private readonly poolToken: number,
    /** Inbox of the caller; undefined for an event. */
    readonly replyTo: string | undefined,
  ) {}

  get subject(): string {
    return this.message.subject;
  }

  /** Pool in the subject; empty for a subject without a pool. */
  get pool(): string {
    return this.poolToken < 0 ? '' : (this.message.subject.split('.')[this.poolToken] ?? '');
  }
}
