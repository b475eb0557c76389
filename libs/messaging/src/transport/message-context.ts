import type { Msg } from 'nats';

/**
 * Result of a handler that has parked the call: the transport sends no reply and frees the in-flight slot. The process
 * that grants the call later answers with `MessagingClient.reply(replyTo, ...)`.
 */
export const PARKED: unique symbol = Symbol('broomwagon.parked');

/** Context that `@Ctx()` gives a handler: everything about the message but its body. */
export class MessageContext {
  constructor(
    private readonly message: Pick<Msg, 'subject'>,
    private readonly poolToken: number,
    /** The caller's inbox; undefined for an event. */
    readonly replyTo: string | undefined,
  ) {}

  get subject(): string {
    return this.message.subject;
  }

  /** The pool the subject names; empty for a subject without one. */
  get pool(): string {
    return this.poolToken < 0 ? '' : (this.message.subject.split('.')[this.poolToken] ?? '');
  }
}
