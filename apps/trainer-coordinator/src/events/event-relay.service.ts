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

const RELAY_INTERVAL_MS = 200;
/** A server that had no JetStream is asked again after this, milliseconds. */
const ASK_AGAIN_MS = 60_000;
/** Events that the server has not confirmed within this time are published again later, milliseconds. */
const CONFIRM_MS = 5_000;
/** What the events of groups that end without training stand for. */
const OUTCOMES = new Map([
  ['group.failed', 'failed'],
  ['group.dropped', 'dropped'],
]);
/** Reasons that are labels; a caller may give any other text. */
const LOSS_REASONS = new Set<unknown>([...FAIL_REASONS, 'worker-lost', 'internal', 'lost', 'abort', 'round-cancelled']);

/**
 * Publishes events from the outbox, in their order and at least once; they leave it when the server has confirmed them.
 * The id of the entry is the message id, by which JetStream drops what comes twice. Nothing depends on the stream: on a
 * server without JetStream events are plain messages.
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
  ) {}

  /** Relays all events of a pool there are now. @throws BroomwagonError UNAVAILABLE: they stay in the outbox */
  @InEachPool('events', (config: CoordinatorConfig) => (config.eventsRelay ? RELAY_INTERVAL_MS : undefined))
  async relay(pool: PoolName): Promise<void> {
    // The client would buffer them, and they would be gone with this process.
    if (!this.messaging.connection.isConnected()) return;
    for (;;) {
      const events = await this.outbox.take(pool);
      if (events.length === 0) return;
      await this.ensureStream();
      await this.publish(pool, events);
      await this.outbox.done(pool, events);
      this.metrics.eventsRelayed.inc(events.length);
      for (const { type, body } of events) this.countLostGroup(pool, type, body.reason);
    }
  }

  private countLostGroup(pool: PoolName, type: string, reason: unknown): void {
    const outcome = OUTCOMES.get(type);
    // A group with equal rewards is a result of its round.
    if (outcome === undefined || reason === 'equal-rewards') return;
    this.metrics.lostGroups.inc({ pool, outcome, reason: LOSS_REASONS.has(reason) ? String(reason) : 'other' });
  }

  /** Settles when the server has them all. */
  private async publish(pool: PoolName, events: readonly RolloutEvent[]): Promise<void> {
    const messages = events.map(({ id, type, body }) => ({
      subject: eventSubject(pool, type),
      // The outbox names its entries by the time of Redis.
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
    // Sent at once, and therefore in this order.
    const answers = await Promise.allSettled(
      messages.map(({ subject, body, messageId }) => stream.publish(subject, body, { msgID: messageId })),
    );
    const failed = answers.find((answer) => answer.status === 'rejected');
    if (failed !== undefined) {
      // It may be gone: it is looked for, and made, before the next try.
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
        // As plain messages they would be missing in the stream.
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
