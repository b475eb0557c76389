import { Injectable, Logger } from '@nestjs/common';
import { eventSubject, type PoolName } from '@broomwagon/contracts';
import { MessagingClient } from '@broomwagon/messaging';
import { FactOutbox } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { CoordinatorMetrics } from '../coordinator.metrics';

/** One stream for all pools. */
const STREAM = 'BROOMWAGON_FACTS';
/** A server that had no JetStream, or was away, is asked again after this, milliseconds. */
const ASK_AGAIN_MS = 60_000;
const NANOSECONDS_PER_MS = 1_000_000;

/**
 * Publishes facts from the outbox, at least once; the id of the entry is the message id, by which JetStream drops
 * what comes twice. Nothing depends on the stream: on a server without JetStream facts are plain messages.
 */
@Injectable()
export class FactRelayService {
  private readonly logger = new Logger(FactRelayService.name);
  private askedAtMs = 0;
  private hasStream = false;

  constructor(
    private readonly outbox: FactOutbox,
    private readonly messaging: MessagingClient,
    private readonly config: CoordinatorConfig,
    private readonly metrics: CoordinatorMetrics,
  ) {}

  /** Relays all facts of a pool there are now. @throws BroomwagonError UNAVAILABLE: they stay in the outbox */
  async relay(pool: PoolName): Promise<void> {
    await this.ensureStream();
    for (;;) {
      const facts = await this.outbox.take(pool);
      if (facts.length === 0) return;
      for (const { id, type, body } of facts) {
        const subject = eventSubject(pool, type);
        // The outbox names its entries by the time of Redis.
        const atMs = Number(id.split('-')[0]);
        this.messaging.publish(subject, { type, pool, atMs, ...body }, { headers: { 'Nats-Msg-Id': `${pool}.${id}` } });
      }
      // The server has them before the outbox forgets them.
      await this.messaging.flush();
      await this.outbox.done(pool, facts);
      this.metrics.factsRelayed(facts.length);
    }
  }

  private async ensureStream(): Promise<void> {
    if (this.hasStream || Date.now() - this.askedAtMs < ASK_AGAIN_MS) return;
    this.askedAtMs = Date.now();
    try {
      const manager = await this.messaging.connection.nats.jetstreamManager();
      const known = await manager.streams.info(STREAM).catch(() => undefined);
      if (known === undefined) {
        await manager.streams.add({
          name: STREAM,
          subjects: [eventSubject('*', '>')],
          max_bytes: this.config.factsStreamMaxBytes,
          max_age: this.config.factsStreamMaxAgeMs * NANOSECONDS_PER_MS,
        });
      }
      this.hasStream = true;
    } catch (error) {
      this.logger.log(`Facts are published without a stream: ${(error as Error).message}`);
    }
  }
}
