import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { BroomwagonError, EVENTS_STREAM, eventSubject, StreamEventsRequest } from '@broomwagon/contracts';
import {
  followStream,
  isStreamMissing,
  MessagingConnection,
  readStream,
  type StoredMessage,
  streamState,
  validate,
} from '@broomwagon/messaging';
import { Metrics } from '@broomwagon/platform';
import type { Request, Response } from 'express';
import { AdminApiConfig } from '../admin-api.config';
import { readBearerToken } from '../auth/access.guard';
import { Authenticator } from '../auth/authenticator';
import type { RequestFields } from '../http/request-fields';
import { acceptsEvent, parseEvent } from './accepts-event';
import { EventReader } from './event-reader';

const HEARTBEAT_MS = 15_000;
/** Pause before the stream is searched again, milliseconds. */
const RETRY_MS = 1_000;
const REPLAY_BATCH = 256;
/** Maximum readers that read stored events at the same time. Each such reader has a consumer of the stream. */
const MAX_REPLAYING = 64;
/**
 * Maximum unread or waiting bytes of a reader. A reader with more bytes, or with more bytes than its share of
 * EVENT_UNREAD_MAX_BYTES, is cut off.
 */
const MAX_UNREAD_BYTES = 1_048_576;

/**
 * Sends events as server-sent events. One consumer of the stream feeds all readers of this replica. A reader that
 * begins in the past first reads stored events with a consumer of its own.
 */
@Injectable()
export class EventFeed implements OnModuleDestroy {
  private readonly logger = new Logger(EventFeed.name);
  private readonly readers = new Map<string, Set<EventReader>>();
  private readonly tokens = new Map<EventReader, string>();
  private readonly gauge;
  private readonly cut;
  private readonly heartbeat = setInterval(() => {
    this.each((reader) => reader.beat());
    void this.examine();
    void this.endRevoked();
  }, HEARTBEAT_MS).unref();
  private readonly stopping = new AbortController();
  private following?: Promise<void>;
  /** The current consumer: messages of an earlier consumer are ignored. */
  private attachment?: symbol;
  private replaying = 0;
  /** Creation time of the stream; undefined while no stream is followed. */
  private created?: string;
  /** Place of the last message in the stream; undefined while no stream is followed. */
  private lastSequence?: number;

  constructor(
    private readonly connection: MessagingConnection,
    private readonly config: AdminApiConfig,
    private readonly authenticator: Authenticator,
    metrics: Metrics,
  ) {
    this.gauge = metrics.gauge('event_readers', 'Streams of events that are open');
    this.cut = metrics.counter('event_readers_cut_total', 'Streams of events that were ended because of slow readers', [
      'reason',
    ]);
  }

  onModuleDestroy(): void {
    clearInterval(this.heartbeat);
    this.stopping.abort();
    this.each((reader) => reader.end());
  }

  /** @throws BroomwagonError VALIDATION_FAILED, OVERLOADED */
  async open({ pool = '', body }: RequestFields, request: Request, response: Response): Promise<void> {
    const filter = validate(StreamEventsRequest, body);
    const lastId = request.get('Last-Event-ID') ?? '';
    if (lastId !== '' && !/^\d{1,15}$/.test(lastId)) {
      throw new BroomwagonError('VALIDATION_FAILED', 'Last-Event-ID must be an id of this stream', {
        field: 'Last-Event-ID',
      });
    }
    await this.follow();
    // If the caller is gone already, no event `close` would remove its reader.
    if (response.destroyed) return;
    if (this.tokens.size >= this.config.maxEventReaders) {
      throw new BroomwagonError('OVERLOADED', `This replica has ${this.tokens.size} readers of events`);
    }
    if (lastId !== '' && this.replaying >= MAX_REPLAYING) {
      throw new BroomwagonError('OVERLOADED', `${this.replaying} readers read stored events; repeat later`);
    }
    const reader = new EventReader(
      response,
      acceptsEvent(filter),
      () => Math.min(MAX_UNREAD_BYTES, this.config.eventUnreadMaxBytes / this.tokens.size),
      (reason) => this.cut.inc({ reason }),
    );
    const ofPool = this.readers.get(pool) ?? new Set();
    this.readers.set(pool, ofPool.add(reader));
    this.tokens.set(reader, readBearerToken(request)!);
    this.gauge.set(this.tokens.size);
    response.once('close', () => {
      ofPool.delete(reader);
      if (ofPool.size === 0 && this.readers.get(pool) === ofPool) this.readers.delete(pool);
      this.tokens.delete(reader);
      this.gauge.set(this.tokens.size);
    });
    // The reader gets a place in the stream first, so that it can continue from there before its first event.
    reader.begin(lastId === '' ? this.lastSequence : undefined);
    if (lastId === '') await reader.live();
    else await this.replay(reader, pool, Number(lastId));
  }

  private async replay(reader: EventReader, pool: string, lastId: number): Promise<void> {
    this.replaying += 1;
    try {
      const from = (await this.isOfFormerStream(lastId)) ? 1 : lastId + 1;
      const position = { stream: EVENTS_STREAM, subject: eventSubject(pool, '>'), from };
      for await (const message of readStream(this.connection, position, REPLAY_BATCH)) {
        const event = parseEvent(message);
        if (event !== undefined && !(await reader.replay(message.sequence, event, message.text))) return;
      }
      await reader.live();
    } catch (error) {
      this.logger.warn({ err: error, pool }, 'Events could not be replayed');
      reader.end();
    } finally {
      this.replaying -= 1;
    }
  }

  /**
   * Whether an id belongs to a former stream. Asks the stream about an id that this replica has not seen: another
   * replica may have sent more events.
   */
  private async isOfFormerStream(id: number): Promise<boolean> {
    if (id <= (this.lastSequence ?? 0)) return false;
    const state = await streamState(this.connection, EVENTS_STREAM);
    return state !== undefined && id > state.lastSequence;
  }

  /** Resolves when the stream is followed, or when the first try has failed. Tries go on in the background. */
  private follow(): Promise<void> {
    return (this.following ??= this.attach().catch((error: unknown) => void this.attachLater(error)));
  }

  /** @param from first sequence; default: the sequence of the next event */
  private async attach(from?: number): Promise<void> {
    const position = { stream: EVENTS_STREAM, subject: eventSubject('*', '>'), from };
    const attachment = (this.attachment = Symbol());
    const { created, lastSequence, stop } = await followStream(this.connection, position, (message) => {
      const isCurrent = this.attachment === attachment;
      if (isCurrent) this.handOn(message);
      return isCurrent;
    });
    this.created = created;
    this.lastSequence ??= lastSequence;
    this.stopping.signal.addEventListener('abort', stop);
  }

  /** Repeats the attachment until it succeeds. Without JetStream, or before the first event, there is no stream. */
  private async attachLater(error: unknown): Promise<void> {
    this.logger.warn({ err: error }, 'The stream of events cannot be followed; this is repeated until it can');
    let isNew = isStreamMissing(error);
    while (!this.stopping.signal.aborted) {
      await delay(RETRY_MS, undefined, { ref: false });
      try {
        // A stream that was created since the first try is read from its first event.
        await this.attach(isNew ? 1 : undefined);
        this.logger.log('The stream of events is followed');
        return;
      } catch (again) {
        isNew ||= isStreamMissing(again);
      }
    }
  }

  /**
   * Checks that the stream still exists. After a deletion the ids of events begin at 1 again, so all readers are ended,
   * and the new stream is followed.
   */
  private async examine(): Promise<void> {
    const { created, lastSequence = 0 } = this;
    if (created === undefined) return;
    // Without an answer nothing changes: the consumer continues when JetStream answers again.
    const state = await streamState(this.connection, EVENTS_STREAM).catch(() => null);
    if (state === null || this.created !== created || this.stopping.signal.aborted) return;
    if (state?.created === created && state.lastSequence >= lastSequence) return;
    this.logger.warn('The stream of events was deleted or created again: all readers are ended');
    this.created = this.lastSequence = this.following = this.attachment = undefined;
    this.each((reader) => reader.end());
    await this.follow();
  }

  /** Ends readers whose tokens were revoked or have expired. */
  private async endRevoked(): Promise<void> {
    for (const token of new Set(this.tokens.values())) {
      // If the token cannot be checked now, its reader continues.
      const identity = await this.authenticator.identify(token).catch(() => null);
      if (identity !== undefined) continue;
      for (const [reader, one] of this.tokens) if (one === token) reader.end();
    }
  }

  private handOn(message: StoredMessage): void {
    const { sequence, subject, text } = message;
    this.lastSequence = sequence;
    const readers = this.readers.get(subject.split('.')[2]!);
    // `parseEvent` does not throw: an exception would end the consumer for all readers.
    const event = readers && parseEvent(message);
    if (event === undefined) return;
    for (const reader of readers!) reader.offer(sequence, event, text);
  }

  private each(work: (reader: EventReader) => void): void {
    for (const readers of this.readers.values()) for (const reader of readers) work(reader);
  }
}
