import { setTimeout as delay } from 'node:timers/promises';
import { Injectable, Logger } from '@nestjs/common';
import {
  BroomwagonError,
  EVENTS_STREAM,
  eventSubject,
  FAIL_REASONS,
  type PoolName,
  wireText,
} from '@broomwagon/contracts';
import { ensureStream, isStreamAway, MessagingClient } from '@broomwagon/messaging';
import { InEachPool } from '@broomwagon/platform';
import { EventOutbox, type RolloutEvent } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';
import { RoundReports } from '../rounds/round-reports';

const RELAY_INTERVAL_MS = 200;
/** Pause before a NATS server without JetStream is asked for JetStream again, milliseconds. */
const ASK_AGAIN_MS = 60_000;
/** Maximum time for a confirmation by NATS, milliseconds: unconfirmed events are published again later. */
const CONFIRM_MS = 5_000;
/** Outcome of a group that ends without training, by the type of its event. */
const OUTCOMES = new Map([
  ['group.failed', 'failed'],
  ['group.dropped', 'dropped'],
]);
/** Reasons that a label may have. Any other text of a caller gets the label `other`. */
const LOSS_REASONS = new Set<unknown>([...FAIL_REASONS, 'worker-lost', 'internal', 'lost', 'abort', 'round-cancelled']);

/**
 * Publishes events from the outbox, in order and at least once. An event leaves the outbox when NATS has confirmed the
 * event. JetStream drops duplicates by their message id, the pool and id of the outbox entry. Without JetStream,
 * events are plain messages.
 */
@Injectable()
export class EventRelayService {
  private readonly logger = new Logger(EventRelayService.name);
  private askedAtMs = -Infinity;
  private hasStream = false;

  constructor(
    private readonly outbox: EventOutbox,
    private readonly messaging: MessagingClient,
    private readonly config: CoordinatorConfig,
    private readonly metrics: CoordinatorMetrics,
    private readonly reports: RoundReports,
  ) {}

  /** Relays all present events of a pool. @throws BroomwagonError UNAVAILABLE: the events stay in the outbox */
  @InEachPool('events', (config: CoordinatorConfig) => (config.eventsRelay ? RELAY_INTERVAL_MS : undefined))
  async relay(pool: PoolName): Promise<void> {
    // A disconnected client would buffer the events, and a death of this process would lose the buffer.
    if (!this.messaging.connection.isConnected()) return;
    for (;;) {
      const events = await this.outbox.take(pool);
      if (events.length === 0) return;
      await this.ensureStream();
      await this.publish(pool, events);
      await this.outbox.done(pool, events);
      this.metrics.eventsRelayed.inc(events.length);
      for (const event of events) {
        this.countLostGroup(pool, event.type, event.body.reason);
        await this.reports.note(pool, event);
      }
    }
  }

  private countLostGroup(pool: PoolName, type: string, reason: unknown): void {
    const outcome = OUTCOMES.get(type);
    // A group with equal rewards is a result of its round.
    if (outcome === undefined || reason === 'equal-rewards') return;
    this.metrics.lostGroups.inc({ pool, outcome, reason: LOSS_REASONS.has(reason) ? String(reason) : 'other' });
  }

  /** Publishes events. Resolves when NATS has confirmed all events. */
  private async publish(pool: PoolName, events: readonly RolloutEvent[]): Promise<void> {
    const messages = events.map(({ id, type, body }) => ({
      subject: eventSubject(pool, type),
      // The id of an outbox entry begins with the time of Redis.
      body: wireText({ type, pool, atMs: Number(id.split('-')[0]), ...body }),
      messageId: `${pool}.${id}`,
    }));
    if (!this.hasStream) {
      for (const { subject, body, messageId } of messages) {
        this.messaging.publish(subject, body, { headers: { 'Nats-Msg-Id': messageId } });
      }
      const late = delay(CONFIRM_MS, 'late', { ref: false });
      if ((await Promise.race([this.messaging.flush(), late])) === 'late') throw unconfirmed('no answer in time');
      return;
    }
    const stream = this.messaging.connection.nats.jetstream({ timeout: CONFIRM_MS });
    // All events are sent at once, and therefore in order.
    const answers = await Promise.allSettled(
      messages.map(({ subject, body, messageId }) => stream.publish(subject, body, { msgID: messageId })),
    );
    const failed = answers.find((answer) => answer.status === 'rejected');
    if (failed !== undefined) {
      // The stream may be gone: the next try finds or creates the stream.
      this.hasStream = false;
      this.askedAtMs = -Infinity;
      throw unconfirmed(`the stream ${EVENTS_STREAM}: ${(failed.reason as Error).message}`, failed.reason);
    }
  }

  private async ensureStream(): Promise<void> {
    if (this.hasStream || Date.now() - this.askedAtMs < ASK_AGAIN_MS) return;
    this.askedAtMs = Date.now();
    try {
      await ensureStream(this.messaging.connection, {
        name: EVENTS_STREAM,
        subjects: [eventSubject('*', '>')],
        maxBytes: this.config.eventsStreamMaxBytes,
        maxAgeMs: this.config.eventsStreamMaxAgeMs,
        replicas: this.config.natsStreamReplicas,
      });
      this.hasStream = true;
    } catch (error) {
      if (isStreamAway(error)) {
        // If events became plain messages now, they would be missing in the stream.
        this.askedAtMs = -Infinity;
        throw unconfirmed((error as Error).message, error);
      }
      this.logger.log(`Events are published without a stream: ${(error as Error).message}`);
    }
  }
}

function unconfirmed(why: string, cause?: unknown): BroomwagonError {
  return new BroomwagonError('UNAVAILABLE', `NATS did not confirm events: ${why}`, { cause });
}
