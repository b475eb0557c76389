import { BroomwagonError, LIMITS } from '@broomwagon/contracts';
import { RpcException, Server, type CustomTransportStrategy, type MessageHandler } from '@nestjs/microservices';
import type { Msg, NatsConnection, NatsError, Subscription } from 'nats';
import { isObservable, lastValueFrom } from 'rxjs';
import type { MessagingConnection } from '../connection';
import { inTrace, isTraced } from '../trace-context';
import { decodeBody, encodeError, internalError, isWireError, publishReply } from '../wire';
import { InFlight } from './in-flight';
import { MessageContext, PARKED } from './message-context';
import { NO_METRICS, type MessageMetrics, type MessageOutcome } from './message-metrics';
import { poolTokenOf, subjectsOf, type Pools } from './subjects';

/** What a service decides about its transport. */
export interface NatsTransportOptions {
  /** Replicas with the same group share the messages; normally the name of the app. */
  queueGroup: string;
  /** Default `*`. */
  pools?: Pools;
  /** Values for `{name}` in declared subjects. */
  placeholders?: Readonly<Record<string, string>>;
  /** Requests above it are answered OVERLOADED at once. Default 1,024. */
  maxInFlight?: number;
  /** Events (messages without a reply) that may wait for a slot; more are dropped and counted. Default 8,192. */
  maxWaitingEvents?: number;
  /** What OVERLOADED advises, before the caller's own jitter. Default 50. */
  overloadRetryAfterMs?: number;
  /** Default: the bound of the protocol. */
  maxBodyBytes?: number;
  /** How long a shutdown waits for what is in hand. Default 20,000. */
  drainDeadlineMs?: number;
  metrics?: MessageMetrics;
}

interface Route {
  pattern: string;
  poolToken: number;
  handler: MessageHandler;
}

/**
 * The NATS transport of all apps: plain JSON in and out, no envelope. Handlers are ordinary `@MessagePattern(subject)`
 * methods; `@MessagePattern(subject, { broadcast: true })` makes every replica get the message.
 *
 * Validation, tracing, shedding, metrics and error mapping are here and not in interceptors, which cost 50 us a call.
 * Connect it with `attachTransport`.
 */
export class NatsTransport extends Server implements CustomTransportStrategy {
  private readonly nats: NatsConnection;
  private readonly metrics: MessageMetrics;
  private readonly maxBodyBytes: number;
  private readonly inFlight: InFlight;
  private readonly subscriptions: Subscription[] = [];
  private readonly declared: string[] = [];
  private readonly overloaded: ReturnType<typeof encodeError>;
  private state: 'new' | 'bound' | 'broken' | 'draining' | 'closed' = 'new';
  private refusal: string | undefined;
  private closing: Promise<void> | undefined;

  constructor(
    private readonly connection: MessagingConnection,
    private readonly options: NatsTransportOptions,
  ) {
    super();
    this.nats = connection.nats;
    this.metrics = options.metrics ?? NO_METRICS;
    this.maxBodyBytes = options.maxBodyBytes ?? LIMITS.bodyBytes;
    this.inFlight = new InFlight(options.maxInFlight ?? 1_024, options.maxWaitingEvents ?? 8_192);
    this.overloaded = encodeError(
      new BroomwagonError('OVERLOADED', 'Too many requests in hand', {
        retryAfterMs: options.overloadRetryAfterMs ?? 50,
      }),
    );
  }

  /** The subjects handlers were declared for, duplicates included. */
  registeredPatterns(): readonly string[] {
    return this.declared;
  }

  /** True when all subscriptions stand and no shutdown has begun. */
  isBound(): boolean {
    return this.state === 'bound';
  }

  isDraining(): boolean {
    return this.state === 'draining' || this.state === 'closed';
  }

  /** Messages being handled or waiting for a slot now. */
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
    this.declared.push(pattern);
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

  /** Drains the subscriptions, waits for what is in hand, then drains the connection. Loses nothing. */
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
      const route: Route = { pattern, poolToken: poolTokenOf(pattern), handler };
      const queue = handler.extras?.broadcast === true ? undefined : this.options.queueGroup;
      for (const subject of subjectsOf(pattern, this.options.pools ?? '*', this.options.placeholders ?? {})) {
        const callback = (error: NatsError | null, message: Msg): void => this.receive(route, error, message);
        this.subscriptions.push(this.nats.subscribe(subject, { queue, callback }));
      }
    }
    // The answer to this ping comes after the server has all subscriptions.
    await this.nats.flush();
    // What was refused is known by now, too.
    if (this.refusal !== undefined) {
      throw new BroomwagonError('UNAVAILABLE', `NATS refuses a subscription: ${this.refusal}; grant it to our user`);
    }
    if (this.state === 'new') {
      this.state = 'bound';
    }
  }

  private receive(route: Route, error: NatsError | null, message: Msg): void {
    if (error !== null) {
      this.state = 'broken';
      this.refusal = error.message;
      this.logger.error(`The subscription to ${route.pattern} was refused: ${error.message}`);
      return;
    }
    const isEvent = !message.reply;
    const admitted = this.inFlight.admit(() => void this.handle(route, message), isEvent);
    if (!admitted) {
      this.metrics.handled(route.pattern, 'OVERLOADED', 0);
      if (!isEvent) {
        this.publishQuietly(message.reply as string, this.overloaded);
      }
    }
  }

  private async handle(route: Route, message: Msg): Promise<void> {
    const startedAtMs = performance.now();
    this.metrics.inFlight(this.inFlight.running());
    let outcome: MessageOutcome;
    try {
      const headers = message.headers;
      const answer = isTraced(headers)
        ? await inTrace(headers, `${route.pattern} process`, () => this.answer(route, message))
        : await this.answer(route, message);
      outcome = answer === PARKED ? 'PARKED' : 'OK';
      if (answer !== PARKED && message.reply) {
        const failure = publishReply(this.nats, message.reply, answer);
        outcome = failure?.code ?? 'OK';
        if (failure !== undefined) {
          this.logDefect(route, message, failure.details, failure.cause ?? failure);
        }
      }
    } catch (thrown) {
      const error = this.mapError(route, message, thrown);
      outcome = error.code;
      if (message.reply) {
        publishReply(this.nats, message.reply, error);
      }
    }
    this.inFlight.done();
    this.metrics.inFlight(this.inFlight.running());
    this.metrics.handled(route.pattern, outcome, (performance.now() - startedAtMs) / 1_000);
  }

  private async answer(route: Route, message: Msg): Promise<unknown> {
    if (message.data.length > this.maxBodyBytes) {
      throw new BroomwagonError('PAYLOAD_TOO_LARGE', `The body is over ${this.maxBodyBytes} bytes`, {
        details: { bytes: message.data.length, limitBytes: this.maxBodyBytes },
      });
    }
    const body = decodeBody(message.data);
    const answer: unknown = await route.handler(body, new MessageContext(message, route.poolToken));
    return isObservable(answer) ? lastValueFrom(answer, { defaultValue: undefined }) : answer;
  }

  private mapError(route: Route, message: Msg, thrown: unknown): BroomwagonError {
    const carried = thrown instanceof RpcException ? thrown.getError() : undefined;
    const ours = isWireError(carried)
      ? BroomwagonError.fromWire({ ...carried, message: carried.message ?? carried.code })
      : thrown;
    if (ours instanceof BroomwagonError && ours.code !== 'INTERNAL') {
      return ours;
    }
    const { error, referenceId } = internalError(thrown);
    this.logDefect(route, message, { referenceId }, thrown);
    return error;
  }

  private logDefect(route: Route, message: Msg, details: unknown, cause: unknown): void {
    this.logger.error({ err: cause, subject: message.subject, details }, `The handler of ${route.pattern} failed`);
  }

  private publishQuietly(inbox: string, encoded: ReturnType<typeof encodeError>): void {
    try {
      this.nats.publish(inbox, encoded.body, { headers: encoded.headers });
    } catch {
      // Closed: the caller's deadline is what is left.
    }
  }

  private async shutDown(): Promise<void> {
    this.state = 'draining';
    const deadlineMs = Date.now() + (this.options.drainDeadlineMs ?? 20_000);
    const left = (): number => Math.max(0, deadlineMs - Date.now());
    if (this.connection.isConnected()) {
      // Settles when the server has confirmed, so all it had sent before is in hand by then.
      const drained = Promise.allSettled(this.subscriptions.map((subscription) => subscription.drain()));
      await Promise.race([drained, this.connection.closedForGood, timeout(left())]);
    }
    await Promise.race([this.inFlight.idle(), timeout(left())]);
    if (this.inFlight.inHand() > 0) {
      this.logger.error(`Shutdown gave up on ${this.inFlight.inHand()} messages in hand`);
    }
    await this.connection.drain(Math.max(1_000, left()));
    this.state = 'closed';
  }
}

function timeout(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs).unref());
}
