import { Injectable, Logger } from '@nestjs/common';
import { MessagingClient } from '@broomwagon/messaging';
import { InEachPool } from '@broomwagon/platform';
import { leaseGrantOf, refusalOf, WaiterStore, type WaiterAnswers } from '@broomwagon/state';
import { LoadBalancerMetrics } from '../load-balancer.metrics';

/** Waiters are answered this late at most. */
const EXPIRE_INTERVAL_MS = 100;

/**
 * Sends the answers of parked acquires to their inboxes. A script takes a waiter out and answers it at once, so whoever
 * ran the script sends it; should this process die before, the caller repeats and gets its lease as `repeated`.
 */
@Injectable()
export class WaiterAnswersService {
  private readonly logger = new Logger(WaiterAnswersService.name);

  constructor(
    private readonly store: WaiterStore,
    private readonly messaging: MessagingClient,
    private readonly metrics: LoadBalancerMetrics,
  ) {}

  send({ answers, servers }: Pick<WaiterAnswers, 'answers' | 'servers'>): void {
    for (const answer of answers) {
      if ('error' in answer) {
        this.metrics.acquires.inc({ outcome: answer.error });
        this.messaging.reply(answer.replyTo, refusalOf(answer));
      } else {
        this.metrics.granted(answer);
        this.messaging.reply(answer.replyTo, leaseGrantOf(answer.acquireId, answer, servers));
      }
    }
  }

  /** Sends the answers, then grants on in the background while one script could not hand out all the room. */
  sendAll(pool: string, reply: WaiterAnswers): void {
    this.send(reply);
    if (!reply.more) return;
    this.grant(pool).catch((error: unknown) => {
      // Upkeep grants again soon.
      this.logger.warn({ err: error, pool }, 'Further waiting acquires could not be granted');
    });
  }

  /** Answers those whose deadline has come. @throws BroomwagonError UNAVAILABLE */
  @InEachPool('expire-waiters', EXPIRE_INTERVAL_MS)
  async expire(pool: string): Promise<void> {
    let reply;
    do {
      reply = await this.store.expire(pool);
      this.send(reply);
    } while (reply.more);
    // Room and a waiter never meet without a grant, unless a process died in between.
    if (reply.waiting > 0) await this.grant(pool);
  }

  /** Gives the room of a pool to those who wait for it. @throws BroomwagonError UNAVAILABLE */
  async grant(pool: string): Promise<void> {
    let more = true;
    while (more) {
      const reply = await this.store.grant(pool);
      this.send(reply);
      more = reply.more;
    }
  }
}
