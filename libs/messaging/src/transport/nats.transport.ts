import { BroomwagonError, LIMITS, replicaSubject, SUBJECT_ROOT } from '@broomwagon/contracts';
import { Server, type CustomTransportStrategy, type MessageHandler } from '@nestjs/microservices';
import {
  headers as makeHeaders,
  type Msg,
  type MsgHdrs,
  type NatsConnection,
  type NatsError,
  type Subscription,
} from 'nats';
import { isObservable, lastValueFrom } from 'rxjs';
import type { MessagingConnection } from '../connection';
import { inMessageSpan } from '../trace-context';
import { decodeBody, internalError, publishReply, READ_AT_HEADER, REPLICA_HEADER, TIMEOUT_HEADER } from '../wire';
import { refuseLate } from './deadline';
import { InFlight } from './in-flight';
import { MessageContext, PARKED } from './message-context';
import { NO_METRICS, type MessageMetrics, type MessageOutcome } from './message-metrics';
import { ReplySubjects } from './reply-subjects';
import { StallWatch } from './stall-watch';
import { findPoolToken, buildSubjects, type Pools } from './subjects';

const LOGGED_IDS = ['job', 'roundId', 'groupId', 'requestId', 'attempt', 'leaseId', 'serverId', 'workerId'];

/** First part of the patterns of operations. */
const OF_POOLS = `${SUBJECT_ROOT}.*.`;
/** The pause has no jitter, because callers add jitter. */
const OVERLOADED = new BroomwagonError('OVERLOADED', 'Too many requests at the same time', { retryAfterMs: 50 });

export interface NatsTransportOptions {
  /** Queue group, normally the name of the app. Replicas with the same group share the messages. */
  queueGroup: string;
  /** Served pools. Default `*`. */
  pools?: Pools;
  /** Values for `{name}` in declared subjects. */
  placeholders?: Readonly<Record<string, string>>;
  /** Maximum messages in work; further requests are answered OVERLOADED. Default 1,024. */
  maxInFlight?: number;
  /**
   * Maximum events (messages without a reply) that wait for a slot. Further events are dropped and counted. Default
   * 8,192.
   */
  maxWaitingEvents?: number;
  /** Subjects to which replies may go. Default: only `_INBOX`. */
  replySubjects?: ReplySubjects;
  /** Maximum time that a shutdown waits for accepted messages, milliseconds. Default 20,000. */
  drainDeadlineMs?: number;
  metrics?: MessageMetrics;
}

interface Route {
  pattern: string;
  poolToken: number;
  handler: MessageHandler;
}

interface Incoming {
  message: Msg;
  /** Subject of the answer; undefined for an event, and for a reply subject that is no inbox. */
  replyTo: string | undefined;
}

/**
 * The NATS transport of all apps, with plain JSON as messages. Handlers are methods with `@MessagePattern(subject)`.
 * With `@MessagePattern(subject, { broadcast: true })` every replica gets the message.
 *
 * Tracing, refusals, metrics and errors are handled here instead of in interceptors, which cost 50 us a call.
 * `attachTransport` connects the transport to an application.
 */
export class NatsTransport extends Server implements CustomTransportStrategy {
  private readonly nats: NatsConnection;
  private readonly metrics: MessageMetrics;
  private readonly inFlight: InFlight;
  private readonly subscriptions: Subscription[] = [];
  private readonly replySubjects: ReplySubjects;
  private readonly stallWatch: StallWatch;
  private state: 'new' | 'bound' | 'draining' | 'closed' = 'new';
  private closing: Promise<void> | undefined;

  constructor(
    private readonly connection: MessagingConnection,
    private readonly options: NatsTransportOptions,
  ) {
    super();
    this.nats = connection.nats;
    this.metrics = options.metrics ?? NO_METRICS;
    this.inFlight = new InFlight(options.maxInFlight ?? 1_024, options.maxWaitingEvents ?? 8_192);
    this.replySubjects = options.replySubjects ?? new ReplySubjects();
    this.stallWatch = new StallWatch(() => this.nats.flush());
  }

  registeredPatterns(): readonly string[] {
    return [...this.messageHandlers.keys()];
  }

  /** True if all subscriptions exist and no shutdown has started. */
  isBound(): boolean {
    return this.state === 'bound' && this.connection.refusals.subscription === undefined;
  }

  isDraining(): boolean {
    return this.state === 'draining' || this.state === 'closed';
  }

  /** Returns the number of messages that are being handled or wait for a slot. */
  inHand(): number {
    return this.inFlight.inHand();
  }

  override addHandler(
    pattern: string,
    callback: MessageHandler,
    isEventHandler = false,
    extras: Record<string, unknown> = {},
  ): void {
    const duplicate = this.messageHandlers.has(pattern);
    super.addHandler(pattern, callback, isEventHandler, extras);
    if (duplicate && !isEventHandler) {
      throw new Error(`Two handlers are declared for ${pattern}`);
    }
  }

  async listen(callback: (error?: unknown) => void): Promise<void> {
    let failure: unknown;
    try {
      await this.bind();
    } catch (error) {
      failure = error;
    }
    callback(failure);
  }

  /** Drains the subscriptions, waits for accepted messages until `drainDeadlineMs`, then drains the connection. */
  close(): Promise<void> {
    this.closing ??= this.shutDown();
    return this.closing;
  }

  on(): never {
    throw new Error('NatsTransport has no events; watch the MessagingConnection');
  }

  unwrap<T>(): T {
    return this.nats as T;
  }

  private async bind(): Promise<void> {
    for (const [pattern, handler] of this.messageHandlers) {
      const route: Route = { pattern, poolToken: findPoolToken(pattern), handler };
      const queue = handler.extras?.broadcast === true ? undefined : this.options.queueGroup;
      this.subscribe(pattern, route, queue);
      // A caller without an answer from the group repeats its request on the subject of one replica.
      if (queue !== undefined && pattern.startsWith(OF_POOLS) && !pattern.includes('{')) {
        this.subscribe(replicaSubject(this.connection.replicaId, '*', pattern.slice(OF_POOLS.length)), route);
      }
    }
    // When the answer to this ping arrives, the server has all subscriptions.
    await this.nats.flush();
    // Refusals of subscriptions have arrived before the answer to the ping.
    if (this.connection.refusals.subscription !== undefined) throw this.connection.refusals.subscription;
    if (this.state === 'new') this.state = 'bound';
  }

  private subscribe(pattern: string, route: Route, queue?: string): void {
    for (const subject of buildSubjects(pattern, this.options.pools ?? '*', this.options.placeholders ?? {})) {
      const callback = (error: NatsError | null, message: Msg): void => this.receive(route, error, message);
      this.subscriptions.push(this.nats.subscribe(subject, { queue, callback }));
    }
  }

  private receive(route: Route, error: NatsError | null, message: Msg): void {
    if (error !== null) {
      if (error.permissionContext !== undefined) this.connection.refusals.note(error.permissionContext);
      return;
    }
    const replyTo = message.reply && this.replySubjects.allows(message.reply) ? message.reply : undefined;
    const nowMs = Date.now();
    const late = refuseLate(message.headers, this.stallWatch.queuedMs(), nowMs);
    if (late !== undefined) {
      this.shed(route, replyTo, late.error, late.isByClock ? nowMs : undefined);
    } else if (!this.inFlight.admit(() => void this.handle(route, { message, replyTo }), replyTo === undefined)) {
      this.shed(route, replyTo, OVERLOADED);
    }
  }

  private shed(route: Route, replyTo: string | undefined, error: BroomwagonError, readAtMs?: number): void {
    this.metrics.handled(route.pattern, error.code, 0);
    if (replyTo === undefined) return;
    let own = this.connection.replicaHeaders;
    if (readAtMs !== undefined) {
      own = makeHeaders();
      own.set(REPLICA_HEADER, this.connection.replicaId);
      own.set(READ_AT_HEADER, String(readAtMs));
    }
    publishReply(this.nats, replyTo, error, own);
  }

  private async handle(route: Route, incoming: Incoming): Promise<void> {
    const { message, replyTo } = incoming;
    const startedAtMs = performance.now();
    this.metrics.inFlight(this.inFlight.running());
    let outcome: MessageOutcome;
    try {
      const answer = await inMessageSpan(message.headers, route.pattern, parsePool(route, message), () =>
        this.answer(route, incoming),
      );
      outcome = answer === PARKED ? 'PARKED' : 'OK';
      if (answer !== PARKED && replyTo !== undefined) {
        const failure = publishReply(this.nats, replyTo, answer, this.headersFor(message));
        outcome = failure?.code ?? 'OK';
        if (failure !== undefined) this.logDefect(route, message, failure.details, failure.cause ?? failure);
      }
    } catch (thrown) {
      const error = this.mapError(route, message, thrown);
      outcome = error.code;
      if (replyTo !== undefined) publishReply(this.nats, replyTo, error, this.headersFor(message));
    }
    this.inFlight.done();
    this.metrics.inFlight(this.inFlight.running());
    this.metrics.handled(route.pattern, outcome, (performance.now() - startedAtMs) / 1_000);
  }

  /** Returns headers with the id of this replica, for a client that sends a timeout and so repeats requests. */
  private headersFor({ headers }: Msg): MsgHdrs | undefined {
    return headers?.has(TIMEOUT_HEADER) ? this.connection.replicaHeaders : undefined;
  }

  private async answer(route: Route, { message, replyTo }: Incoming): Promise<unknown> {
    if (message.data.length > LIMITS.bodyBytes) {
      throw new BroomwagonError('PAYLOAD_TOO_LARGE', `The body is over ${LIMITS.bodyBytes} bytes`, {
        details: { bytes: message.data.length, limitBytes: LIMITS.bodyBytes },
      });
    }
    const body = decodeBody(message.data);
    const answer: unknown = await route.handler(body, new MessageContext(message, route.poolToken, replyTo));
    return isObservable(answer) ? lastValueFrom(answer, { defaultValue: undefined }) : answer;
  }

  private mapError(route: Route, message: Msg, thrown: unknown): BroomwagonError {
    if (thrown instanceof BroomwagonError && thrown.code !== 'INTERNAL') return thrown;
    const { error, referenceId } = internalError(thrown);
    this.logDefect(route, message, { referenceId }, thrown);
    return error;
  }

  private logDefect(route: Route, message: Msg, details: unknown, cause: unknown): void {
    const fields = { ...idsIn(message), err: cause, subject: message.subject, details };
    this.logger.error(fields, `The handler of ${route.pattern} failed`);
  }

  private async shutDown(): Promise<void> {
    this.state = 'draining';
    this.stallWatch.stop();
    const deadlineMs = Date.now() + (this.options.drainDeadlineMs ?? 20_000);
    const left = (): number => Math.max(0, deadlineMs - Date.now());
    if (this.connection.isConnected()) {
      // A drain ends when the server has confirmed it, so all messages that the server has sent before are accepted.
      const drained = Promise.allSettled(this.subscriptions.map((subscription) => subscription.drain()));
      await Promise.race([drained, this.connection.closedForGood, timeout(left())]);
    }
    await Promise.race([this.inFlight.idle(), timeout(left())]);
    if (this.inFlight.inHand() > 0) {
      this.logger.error(`The shutdown ended before ${this.inFlight.inHand()} messages were handled`);
    }
    await this.connection.drain(Math.max(1_000, left()));
    this.state = 'closed';
  }
}

function parsePool({ poolToken }: Route, { subject }: Msg): string | undefined {
  return subject.split('.')[poolToken];
}

/** Returns the ids in the body of a message, for logs. Other fields of a body are not logged. */
function idsIn({ data }: Msg): Record<string, string> {
  try {
    const body = decodeBody(data);
    return Object.fromEntries(
      LOGGED_IDS.flatMap((name) => (typeof body[name] === 'string' ? [[name, body[name]]] : [])),
    );
  } catch {
    return {};
  }
}

function timeout(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs).unref());
}
