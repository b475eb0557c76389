import { BroomwagonError } from '@broomwagon/contracts';
import { createInbox, type Msg, type MsgHdrs } from 'nats';
import type { MessagingConnection } from '../connection';
import { READ_AT_HEADER, REPLICA_HEADER, SENT_AT_HEADER } from '../wire';
import { LiveReplicas } from './live-replicas';
import { ServiceClock } from './service-clock';

/** Error of a request that no service has received, so the request has no effect. */
export class UndeliveredError extends BroomwagonError {}

/** A request and its timeout. */
export interface Sending {
  subject: string;
  body: string;
  headers: MsgHdrs;
  timeoutMs: number;
  /** True if the service may park the request, so that a late reply is no failure. */
  mayPark: boolean;
}

interface Pending extends Sending {
  resolve(message: Msg): void;
  reject(error: BroomwagonError): void;
  group: string | undefined;
  sentAtMs: number;
  expiresAtMs: number;
  repeatAtMs: number;
  repeats: number;
  /** True if the request was sent again after a correction of the clock. */
  isCorrected: boolean;
}

/** Longest delay until a timeout is noticed. */
const SWEEP_INTERVAL_MS = 20;
/** Maximum repeated requests without an answer, which limits the load of repeats on a slow service. */
const MAX_REPEATED = { answering: 256, parking: 1_024 };
/** Maximum requests without an answer after `SILENCE_MS` without any reply. Further requests are refused at once. */
const MAX_UNANSWERED = 4_096;
const SILENCE_MS = 1_000;
/** End of the token of a repeat. */
const REPEAT = '-r';

/**
 * Sends all requests of a connection with one wildcard inbox, one map and one timer. A request costs 8 us; `request` of
 * nats.js costs 40 us. A request without an answer is repeated after `repeatAfterMs`, then after pauses that double. A
 * repeat goes to a replica that has replied meanwhile, otherwise to the group, because NATS also sends messages to a
 * replica that hangs. Repeats are safe, because all commands are idempotent.
 *
 * A request has the time at which it was sent, so that no service processes the request long after its timeout. While
 * the link to NATS is down, requests are kept here, because nats.js would send them even after their timeout.
 */
export class RequestMultiplexer {
  private readonly inbox: string;
  private readonly pending = new Map<string, Pending>();
  /** Tokens of requests to send at the end of this turn of the event loop, or when the link is up again. */
  private readonly unsent = new Set<string>();
  private readonly clock = new ServiceClock();
  private readonly live = new LiveReplicas();
  private sequence = 0;
  private readonly repeated = { answering: 0, parking: 0 };
  private parking = 0;
  private seenAtMs = -Infinity;
  private subscribed = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly connection: MessagingConnection,
    private readonly repeatAfterMs: number,
  ) {
    this.inbox = createInbox(connection.inboxPrefix);
  }

  size(): number {
    return this.pending.size;
  }

  /**
   * @throws BroomwagonError TIMEOUT, UNAVAILABLE (the subject has no subscriber, or the connection is closed),
   * PAYLOAD_TOO_LARGE, OVERLOADED (thousands of requests have no answer, and no service replies)
   */
  request(sending: Sending): Promise<Msg> {
    return new Promise((resolve, reject) => {
      const sentAtMs = performance.now();
      if (this.pending.size - this.parking >= MAX_UNANSWERED && sentAtMs - this.seenAtMs > SILENCE_MS) {
        const why = `${this.pending.size} requests of this client have no answer`;
        reject(new BroomwagonError('OVERLOADED', why, { retryAfterMs: SILENCE_MS / 4 }));
        return;
      }
      const token = (this.sequence++).toString(36);
      if (this.pending.size === 0) this.seenAtMs = sentAtMs;
      this.parking += sending.mayPark ? 1 : 0;
      sending.headers.set(SENT_AT_HEADER, String(this.clock.toServiceTime(sentAtMs)));
      this.pending.set(token, {
        resolve,
        reject,
        group: this.live.findGroup(sending.subject),
        sentAtMs,
        expiresAtMs: sentAtMs + sending.timeoutMs,
        repeatAtMs: sentAtMs + this.repeatAfterMs * (sending.mayPark ? 2 : 1),
        repeats: 0,
        isCorrected: false,
        ...sending,
      });
      this.sendLater(token);
      this.timer ??= setInterval(() => this.sweep(), SWEEP_INTERVAL_MS);
    });
  }

  /**
   * Rejects all requests, or the requests of one subject, because NATS refuses the subject or the connection is closed.
   */
  reject(error: BroomwagonError, subject?: string): void {
    for (const [token, pending] of this.pending) {
      if (subject !== undefined && pending.subject !== subject) continue;
      this.forget(token, pending);
      pending.reject(error);
    }
    if (this.pending.size === 0) this.stopTimer();
  }

  /**
   * Sends all requests of one turn of the event loop with one write, because a write costs more than the rest of a
   * request.
   */
  private sendLater(token: string): void {
    this.unsent.add(token);
    if (this.unsent.size === 1) setImmediate(() => this.sendUnsent());
  }

  private sendUnsent(): void {
    if (this.isDown()) return;
    for (const token of this.unsent) {
      const pending = this.pending.get(token)!;
      this.unsent.delete(token);
      try {
        this.subscribe();
        this.send(pending.subject, pending, token);
      } catch (error) {
        this.forget(token, pending);
        pending.reject(sendFailure(pending.subject, error));
      }
    }
  }

  /** True while the link to NATS is being restored. */
  private isDown(): boolean {
    return !this.connection.isConnected() && !this.connection.isClosed();
  }

  private send(subject: string, { body, headers }: Sending, token: string): void {
    this.connection.nats.publish(subject, body, { reply: `${this.inbox}.${token}`, headers });
  }

  private subscribe(): void {
    if (this.subscribed) return;
    const start = this.inbox.length + 1;
    this.connection.nats.subscribe(`${this.inbox}.*`, {
      callback: (error, message) => {
        if (error !== null) {
          // The next request subscribes again.
          this.subscribed = false;
          this.reject(new BroomwagonError('FORBIDDEN', `NATS refuses the inbox of this client: ${error.message}`));
          return;
        }
        this.receive(message.subject.slice(start), message);
      },
    });
    this.subscribed = true;
  }

  private receive(name: string, message: Msg): void {
    const isRepeat = name.endsWith(REPEAT);
    const token = isRepeat ? name.slice(0, -REPEAT.length) : name;
    const isUnserved = message.data.length === 0 && message.headers?.code === 503;
    const pending = this.pending.get(token);
    // The reply is late or a second reply, or the replica of a repeat has ended.
    if (pending === undefined || (isUnserved && isRepeat)) return;
    const { foreignReplies } = this.connection;
    if (!isUnserved && foreignReplies.isForeign(pending.subject, message, pending.mayPark)) return;
    if (isUnserved) {
      this.forget(token, pending);
      pending.reject(new UndeliveredError('UNAVAILABLE', `No service handles ${pending.subject}`));
      return;
    }
    this.seenAtMs = performance.now();
    const replicaId = message.headers?.get(REPLICA_HEADER);
    if (replicaId && pending.group !== undefined) this.live.seen(pending.group, replicaId, this.seenAtMs);
    const readAtMs = Number(message.headers?.get(READ_AT_HEADER) || Number.NaN);
    if (readAtMs > 0 && !pending.isCorrected && this.seenAtMs < pending.expiresAtMs) {
      this.sendCorrected(token, pending, readAtMs);
      return;
    }
    this.forget(token, pending);
    pending.resolve(message);
  }

  /**
   * Sends a request again, if possible to the replica that has refused the request because the clock of this client
   * differs.
   */
  private sendCorrected(token: string, pending: Pending, readAtMs: number): void {
    const { subject, headers, group, sentAtMs } = pending;
    this.clock.correct(readAtMs, sentAtMs, this.seenAtMs);
    headers.set(SENT_AT_HEADER, String(this.clock.toServiceTime(sentAtMs)));
    pending.isCorrected = true;
    const own = group === undefined ? undefined : this.live.ownSubject(subject, group, sentAtMs);
    this.sendAgain(own ?? subject, pending, token, token);
  }

  /** Sends a request once more, or rejects it: NATS may have a smaller limit after a reconnect. */
  private sendAgain(subject: string, pending: Pending, token: string, sentToken: string): void {
    try {
      this.send(subject, pending, sentToken);
    } catch (error) {
      this.forget(token, pending);
      const { code, message } = sendFailure(pending.subject, error);
      // The error is not UndeliveredError: the first sending may have arrived.
      pending.reject(new BroomwagonError(code, message, { cause: error }));
    }
  }

  private sweep(): void {
    if (this.unsent.size > 0) this.sendUnsent();
    const isDown = this.isDown();
    const now = performance.now();
    for (const [token, pending] of this.pending) {
      if (pending.expiresAtMs <= now) {
        this.forget(token, pending);
        pending.reject(
          new BroomwagonError('TIMEOUT', `No reply from ${pending.subject} within ${Math.round(pending.timeoutMs)} ms`),
        );
      } else if (pending.repeatAtMs <= now && pending.group !== undefined && !isDown) {
        this.repeat(token, pending, pending.group);
      }
    }
    if (this.pending.size === 0) this.stopTimer();
  }

  private repeat(token: string, pending: Pending, group: string): void {
    const kind = getKind(pending);
    if (pending.repeats === 0) {
      if (this.repeated[kind] >= MAX_REPEATED[kind]) return;
      this.repeated[kind] += 1;
    }
    const subject = this.live.ownSubject(pending.subject, group, pending.sentAtMs) ?? pending.subject;
    pending.repeats += 1;
    pending.repeatAtMs += this.repeatAfterMs * 2 ** pending.repeats;
    this.sendAgain(subject, pending, token, token + REPEAT);
  }

  private forget(token: string, pending: Pending): void {
    this.pending.delete(token);
    this.unsent.delete(token);
    this.repeated[getKind(pending)] -= pending.repeats > 0 ? 1 : 0;
    this.parking -= pending.mayPark ? 1 : 0;
  }

  private stopTimer(): void {
    clearInterval(this.timer);
    this.timer = undefined;
  }
}

function getKind({ mayPark }: Pending): keyof typeof MAX_REPEATED {
  return mayPark ? 'parking' : 'answering';
}

/** Converts an error of nats.js about a message that was not sent. */
export function sendFailure(subject: string, error: unknown): BroomwagonError {
  if ((error as { code?: string }).code === 'MAX_PAYLOAD_EXCEEDED') {
    return new UndeliveredError('PAYLOAD_TOO_LARGE', `The body for ${subject} is over the limit of the NATS server`);
  }
  const why = error instanceof Error ? error.message : String(error);
  return new UndeliveredError('UNAVAILABLE', `Cannot send to ${subject}: ${why}`, { cause: error });
}
