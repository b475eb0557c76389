import type { Msg, MsgHdrs } from 'nats';
import { TIMEOUT_HEADER } from '../wire';

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
  /** Wall clock of this process when the message was taken, in milliseconds. */
  readonly receivedAtMs = Date.now();

  constructor(
    private readonly message: Pick<Msg, 'subject' | 'reply' | 'headers'>,
    private readonly poolToken: number,
  ) {}

  get subject(): string {
    return this.message.subject;
  }

  /** The pool the subject names; empty for a subject without one. */
  get pool(): string {
    return this.poolToken < 0 ? '' : (this.message.subject.split('.')[this.poolToken] ?? '');
  }

  /** The caller's inbox; undefined for an event. */
  get replyTo(): string | undefined {
    return this.message.reply || undefined;
  }

  get headers(): MessageHeaders {
    const headers: MsgHdrs | undefined = this.message.headers;
    return { get: (name) => headers?.get(name) || undefined, keys: () => headers?.keys() ?? [] };
  }

  /** When the caller stops waiting, in milliseconds of this process's wall clock; undefined when it did not say. */
  get deadlineMs(): number | undefined {
    const timeoutMs = Number(this.message.headers?.get(TIMEOUT_HEADER) || Number.NaN);
    return timeoutMs > 0 ? this.receivedAtMs + timeoutMs : undefined;
  }
}
