import type { Msg, MsgHdrs } from 'nats';

/**
 * What a handler returns when it has parked the call: the transport sends no reply and frees the in-flight slot.
 * Whoever grants the call later answers with `MessagingClient.reply(replyTo, ...)`.
 */
export const PARKED: unique symbol = Symbol('broomwagon.parked');

/** Headers of a message, read only. Names are case sensitive. */
export interface MessageHeaders {
  get(name: string): string | undefined;
  keys(): string[];
}

/** What `@Ctx()` gives a handler: everything about the message but its body. */
export class MessageContext {
  constructor(
    private readonly message: Pick<Msg, 'subject' | 'headers'>,
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

  get headers(): MessageHeaders {
    const headers: MsgHdrs | undefined = this.message.headers;
    return { get: (name) => headers?.get(name) || undefined, keys: () => headers?.keys() ?? [] };
  }
}
