import { Injectable, Logger } from '@nestjs/common';
import { MessagingClient } from '@broomwagon/messaging';
import { InEachPool } from '@broomwagon/platform';
import { toLeaseGrant, toRefusal, WaiterStore, type WaiterAnswers } from '@broomwagon/state';
import { LoadBalancerMetrics } from '../load-balancer.metrics';

/** Interval of expiries, milliseconds: the maximum delay of an answer after the deadline of a waiter. */
const EXPIRE_INTERVAL_MS = 100;

/**
 * Answers parked acquires. A transition removes a waiter and returns the answer, which the process of the transition
 * sends. If this process dies first, the caller repeats its call and gets the lease as `repeated`.
 */
@Injectable()
export class WaiterAnswersService {
  private readonly logger = new Logger(WaiterAnswersService.name);

  constructor(
    private readonly store: WaiterStore,
    private readonly messaging: MessagingClient,
    private readonly metrics: LoadBalancerMetrics,
  ) {}

  send(pool: string, { answers, servers }: Pick<WaiterAnswers, 'answers' | 'servers'>): void {
    for (const answer of answers) {
      if ('error' in answer) {
        this.metrics.acquires.inc({ outcome: answer.error });
        this.messaging.reply(answer.replyTo, toRefusal(answer));
      } else {
        this.metrics.granted(answer);
        this.metrics.waited(pool, answer.waitedMs);
        this.messaging.reply(answer.replyTo, toLeaseGrant(answer.acquireId, answer, servers));
      }
    }
  }

  /** Sends the answers of a transition. If the transition has left free places, grants them in the background. */
  sendAll(pool: string, reply: WaiterAnswers): void {
    this.send(pool, reply);
    if (!reply.more) return;
    this.grant(pool).catch((error: unknown) => {
      // The next run of `expire` grants the acquires.
      this.logger.warn({ err: error, pool }, 'Further waiting acquires could not be granted');
    });
  }

  /** Answers the waiters whose deadline has passed. @throws BroomwagonError UNAVAILABLE */
  @InEachPool('expire-waiters', EXPIRE_INTERVAL_MS)
  async expire(pool: string): Promise<void> {
    let left = 0;
    for await (const page of this.store.whileMore('expire', pool)) {
      this.send(pool, page);
      left = page.waiting;
    }
    // A process may have died before it granted a free place.
    if (left > 0) await this.grant(pool);
  }

  /** Grants the free places of a pool to its waiters. @throws BroomwagonError UNAVAILABLE */
  async grant(pool: string): Promise<void> {
    for await (const page of this.store.whileMore('grant', pool)) this.send(pool, page);
  }
}
