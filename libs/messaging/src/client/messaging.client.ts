import { BroomwagonError, isBroomwagonError } from '@broomwagon/contracts';
import { headers as makeHeaders, type Msg, type MsgHdrs, RequestStrategy } from 'nats';
import type { MessagingConnection } from '../connection';
import { injectTrace, inRequestSpan } from '../trace-context';
import { MessageContext } from '../transport/message-context';
import { ReplySubjects } from '../transport/reply-subjects';
import { findPoolToken } from '../transport/subjects';
import { decodeBody, publishReply, TIMEOUT_HEADER, readWaitMs, readWireError, type JsonObject } from '../wire';
import { RequestMultiplexer, sendFailure } from './request-multiplexer';
import { withRetry, type RetryOptions } from './retry';
import { ServiceOutages } from './service-outages';

export interface RequestOptions {
  /** Longest wait for the reply, milliseconds. Default 5,000. */
  timeoutMs?: number;
  headers?: Readonly<Record<string, string>>;
}

export interface ClientSubscription {
  /** Ends the subscription at once. */
  unsubscribe(): void;
  /** Ends the subscription. Resolves when all messages that have arrived are handled. */
  drain(): Promise<void>;
}

/** A message handler outside Nest. */
export type ClientHandler = (body: JsonObject, context: MessageContext) => void | Promise<void>;

/** Sends requests, events and replies to parked calls, with or without Nest. All failures are BroomwagonErrors. */
export class MessagingClient {
  private readonly multiplexer: RequestMultiplexer;
  private readonly services: ServiceOutages;

  constructor(
    readonly connection: MessagingConnection,
    private readonly replySubjects = new ReplySubjects(),
    /** Time after which a request without an answer is first repeated, milliseconds. */
    repeatAfterMs = 1_000,
  ) {
    this.multiplexer = new RequestMultiplexer(connection, repeatAfterMs);
    connection.refusals.onPublish((subject, error) => this.multiplexer.reject(error, subject));
    this.services = new ServiceOutages(() => connection.isConnected());
    void connection.closedForGood.then((error) => {
      this.multiplexer.reject(new BroomwagonError('UNAVAILABLE', 'The connection to NATS is closed', { cause: error }));
      this.services.stop();
    });
  }

  /**
   * Sends a request and returns the parsed reply. A request without a reply is repeated within its timeout, first to a
   * replica that has replied meanwhile, so a replica that hangs delays callers by a second.
   * @throws BroomwagonError of the service, TIMEOUT, UNAVAILABLE, OVERLOADED or PAYLOAD_TOO_LARGE
   */
  request<Reply = unknown>(subject: string, body: object, options: RequestOptions = {}): Promise<Reply> {
    return inRequestSpan(subject, () => this.requestOnce<Reply>(subject, body, options));
  }

  /**
   * Sends a request that every replica handles, and returns the replies, without errors. The wait ends 300 ms after the
   * last reply.
   * @param maxWaitMs longest wait for the first reply, milliseconds
   * @throws BroomwagonError UNAVAILABLE when the subject has no subscriber
   */
  async requestAll<Reply>(subject: string, body: object, maxWaitMs: number): Promise<Reply[]> {
    const options = { strategy: RequestStrategy.JitterTimer, maxWait: maxWaitMs };
    const replies: Reply[] = [];
    try {
      for await (const message of await this.connection.nats.requestMany(subject, JSON.stringify(body), options)) {
        if (this.connection.foreignReplies.isForeign(subject, message, true)) continue;
        const reply = decodeBody(message.data);
        if (readWireError(reply) === undefined) replies.push(reply as Reply);
      }
    } catch (error) {
      throw sendFailure(subject, error);
    }
    return replies;
  }

  private async requestOnce<Reply>(subject: string, body: object, options: RequestOptions): Promise<Reply> {
    const timeoutMs = options.timeoutMs ?? 5_000;
    const sent = {
      subject,
      body: JSON.stringify(body),
      headers: buildRequestHeaders(options.headers, timeoutMs),
      timeoutMs,
      mayPark: readWaitMs(body) > 0,
    };
    let message: Msg;
    try {
      message = await this.multiplexer.request(sent);
    } catch (error) {
      // A call that is given up while the service may still hold it says nothing of the service.
      const isHeld = isBroomwagonError(error, 'TIMEOUT') && readWaitMs(body) >= timeoutMs;
      if (isBroomwagonError(error) && !isHeld) this.services.noteFailure(subject, error);
      throw error;
    }
    let reply: unknown;
    try {
      reply = decodeBody(message.data);
    } catch (error) {
      throw new BroomwagonError('INTERNAL', `The reply of ${subject} is not a JSON object`, { cause: error });
    }
    const failure = readWireError(reply);
    if (failure !== undefined) {
      this.services.noteRefusal(subject, failure);
      throw failure;
    }
    this.services.noteAnswer(subject);
    return reply as Reply;
  }

  /**
   * Repeats `request` while the error is retryable and the deadline allows. Pauses grow exponentially with full jitter,
   * and are at least `retryAfterMs` of the service.
   */
  requestWithRetry<Reply = unknown>(
    subject: string,
    body: object,
    options: RetryOptions & Omit<RequestOptions, 'timeoutMs'>,
  ): Promise<Reply> {
    return withRetry((timeoutMs) => this.request<Reply>(subject, body, { timeoutMs, ...options }), options);
  }

  /**
   * Publishes an object or its JSON. Events are buffered while the connection is down.
   * @throws BroomwagonError UNAVAILABLE
   */
  publish(subject: string, body: object | string, options: Pick<RequestOptions, 'headers'> = {}): void {
    try {
      const text = typeof body === 'string' ? body : JSON.stringify(body);
      this.connection.nats.publish(subject, text, { headers: buildHeaders(options.headers) });
    } catch (error) {
      throw sendFailure(subject, error);
    }
  }

  /** Answers a parked call with a result or an error. Nothing is sent to a subject that is no inbox. Never throws. */
  reply(inbox: string, answer: object | BroomwagonError): void {
    if (this.replySubjects.allows(inbox))
      publishReply(this.connection.nats, inbox, answer, this.connection.replicaHeaders);
  }

  /**
   * Handles messages of a subject. With `queue`, one member of the group gets each message. Errors, also of malformed
   * messages, go to `onError`.
   */
  subscribe(
    subject: string,
    handler: ClientHandler,
    options: { queue?: string; onError?: (error: unknown) => void } = {},
  ): ClientSubscription {
    const running = new Set<Promise<void>>();
    const poolToken = findPoolToken(subject);
    const { connection } = this;
    const subscription = connection.nats.subscribe(subject, {
      queue: options.queue,
      callback: (refusal, message) => {
        const work = (async () => {
          if (refusal?.permissionContext) throw connection.refusals.note(refusal.permissionContext);
          if (refusal !== null) throw sendFailure(subject, refusal);
          await handler(decodeBody(message.data), new MessageContext(message, poolToken, message.reply || undefined));
        })().catch((failure: unknown) => options.onError?.(failure));
        running.add(work);
        void work.finally(() => running.delete(work));
      },
    });
    return {
      unsubscribe: () => subscription.unsubscribe(),
      drain: async () => {
        await subscription.drain();
        await Promise.allSettled(running);
      },
    };
  }

  /** Resolves when the server has received all published messages and all subscriptions. */
  async flush(): Promise<void> {
    await this.connection.nats.flush();
  }

  /** Returns the number of requests that wait for a reply. */
  inFlight(): number {
    return this.multiplexer.size();
  }
}

function buildRequestHeaders(given: RequestOptions['headers'], timeoutMs: number): MsgHdrs {
  const made = buildHeaders(given) ?? makeHeaders();
  made.set(TIMEOUT_HEADER, String(Math.round(timeoutMs)));
  return made;
}

function buildHeaders(given: RequestOptions['headers']): MsgHdrs | undefined {
  const made = given === undefined ? undefined : makeHeaders();
  for (const [name, value] of Object.entries(given ?? {})) made?.set(name, value);
  return injectTrace(made, makeHeaders);
}
