import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import {
  BroomwagonError,
  EVENTS_STREAM,
  eventSubject,
  type PoolEvent,
  StreamEventsRequest,
} from '@broomwagon/contracts';
import { followStream, MessagingConnection, readStream, type StoredMessage, validate } from '@broomwagon/messaging';
import { Metrics } from '@broomwagon/platform';
import type { Request, Response } from 'express';
import { AdminApiConfig } from '../admin-api.config';
import type { RequestFields } from '../http/request-fields';
import { acceptsEvent } from './accepts-event';
import { EventReader } from './event-reader';

const HEARTBEAT_MS = 15_000;
/** A revoked token reads for this long at most, milliseconds. */
const MAX_STREAM_MS = 600_000;
/** Pause before the stream is looked for again, milliseconds. */
const RETRY_MS = 1_000;
const REPLAY_BATCH = 256;
/** A reader with more unread bytes than this is cut off, or with more than its share of EVENT_UNREAD_MAX_BYTES. */
const MOST_UNREAD_BYTES = 1_048_576;

/**
 * Server-sent events. One consumer of the stream for this replica feeds all readers; a reader that begins in the past
 * reads the stream itself until it has caught up.
 */
@Injectable()
export class EventFeed implements OnModuleDestroy {
  private readonly logger = new Logger(EventFeed.name);
  private readonly readers = new Map<string, Set<EventReader>>();
  private readonly gauge;
  private readonly cut;
  private readonly heartbeat = setInterval(() => this.each((reader) => reader.beat()), HEARTBEAT_MS).unref();
  private readonly stopping = new AbortController();
  private following?: Promise<void>;
  private count = 0;
  /** Place in the stream of the last message; undefined while the stream is not followed. */
  private lastSequence?: number;

  constructor(
    private readonly connection: MessagingConnection,
    private readonly config: AdminApiConfig,
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
    // The caller may be gone: then no `close` would remove its reader.
    if (response.destroyed) return;
    if (this.count >= this.config.maxEventReaders) {
      throw new BroomwagonError('OVERLOADED', `This replica has ${this.count} readers of events`);
    }
    const reader = new EventReader(
      response,
      acceptsEvent(filter),
      () => Math.min(MOST_UNREAD_BYTES, this.config.eventUnreadMaxBytes / this.count),
      (reason) => this.cut.inc({ reason }),
    );
    const ofPool = this.readers.get(pool) ?? new Set();
    this.readers.set(pool, ofPool.add(reader));
    this.gauge.set((this.count += 1));
    const timer = setTimeout(() => reader.end(), MAX_STREAM_MS).unref();
    response.once('close', () => {
      clearTimeout(timer);
      ofPool.delete(reader);
      if (ofPool.size === 0 && this.readers.get(pool) === ofPool) this.readers.delete(pool);
      this.gauge.set((this.count -= 1));
    });
    // A reader without an event can then continue after a broken connection as all others do.
    reader.begin(lastId === '' ? this.lastSequence : undefined);
    if (lastId !== '') await this.replay(reader, pool, Number(lastId) + 1);
    await reader.live();
  }

  private async replay(reader: EventReader, pool: string, from: number): Promise<void> {
    const position = { stream: EVENTS_STREAM, subject: eventSubject(pool, '>'), from };
    try {
      for await (const { sequence, text } of readStream(this.connection, position, REPLAY_BATCH)) {
        const event = this.parse(sequence, text);
        if (event !== undefined && !(await reader.replay(sequence, event, text))) return;
      }
    } catch (error) {
      this.logger.warn({ err: error, pool }, 'Events could not be replayed');
      reader.end();
    }
  }

  /** Settles when the stream is followed, or was not found: then it is looked for until it is there. */
  private follow(): Promise<void> {
    return (this.following ??= this.attach().catch(() => void this.attachLater()));
  }

  private async attach(): Promise<void> {
    const position = { stream: EVENTS_STREAM, subject: eventSubject('*', '>') };
    const { after, stop } = await followStream(this.connection, position, (message) => this.handOn(message));
    this.lastSequence ??= after;
    this.stopping.signal.addEventListener('abort', stop);
  }

  private async attachLater(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      await delay(RETRY_MS, undefined, { ref: false });
      try {
        await this.attach();
        return;
      } catch {
        // Without JetStream, or before the first event, there is no stream.
      }
    }
  }

  private handOn({ sequence, subject, text }: StoredMessage): void {
    this.lastSequence = sequence;
    const readers = this.readers.get(subject.split('.')[2]!);
    if (readers === undefined) return;
    const event = this.parse(sequence, text);
    if (event === undefined) return;
    for (const reader of readers) reader.offer(sequence, event, text);
  }

  /** Undefined for a message that is no event: an exception would end the consumer, and with it the events of all. */
  private parse(sequence: number, text: string): PoolEvent | undefined {
    try {
      const event = JSON.parse(text) as PoolEvent | null;
      if (typeof event?.type === 'string') return event;
    } catch {
      // Reported below.
    }
    this.logger.warn({ sequence }, 'A message of the stream of events is no event and is left out');
    return undefined;
  }

  private each(work: (reader: EventReader) => void): void {
    for (const readers of this.readers.values()) for (const reader of readers) work(reader);
  }
}
