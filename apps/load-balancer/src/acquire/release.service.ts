import { Injectable, Logger } from '@nestjs/common';
import {
  BroomwagonError,
  type ReleaseItem,
  type ReleaseManyReply,
  type ReleaseOutcome,
  type ReleaseReply,
} from '@broomwagon/contracts';
import { failpoint } from '@broomwagon/platform';
import { LeaseStore, parseLeaseId, type ReleaseEntry } from '@broomwagon/state';
import { LoadBalancerMetrics } from '../load-balancer.metrics';
import { PoolCoalescers } from '../coalescing/pool-coalescers';
import { ProbeService } from '../servers/probe.service';
import { WaiterAnswersService } from '../waiters/waiter-answers.service';

const UNKNOWN: ReleaseReply = { released: false, reason: 'unknown' };

/** `lb.release` and `lb.release-many`. A repeated, late or unknown release changes nothing, and a metric counts it. */
@Injectable()
export class ReleaseService {
  private readonly logger = new Logger(ReleaseService.name);
  private readonly calls = new PoolCoalescers<ReleaseEntry, ReleaseReply>((pool, items) => this.run(pool, items));

  constructor(
    private readonly store: LeaseStore,
    private readonly waiters: WaiterAnswersService,
    private readonly prober: ProbeService,
    private readonly metrics: LoadBalancerMetrics,
  ) {}

  /** @throws BroomwagonError VALIDATION_FAILED, UNAVAILABLE */
  async release(pool: string, item: ReleaseItem): Promise<ReleaseReply> {
    const entry = toReleaseEntry(item, '');
    const reply = entry ? await this.calls.add(pool, entry) : this.unknown();
    await failpoint('load-balancer.release.before-reply');
    return reply;
  }

  /** @throws BroomwagonError VALIDATION_FAILED, before any lease is released; UNAVAILABLE */
  async releaseMany(pool: string, items: readonly ReleaseItem[]): Promise<ReleaseManyReply> {
    const entries = items.map((item, index) => toReleaseEntry(item, `releases.${index}.`));
    const known = entries.filter((entry) => entry !== undefined);
    const released = await this.calls.addAll(pool, known);
    let next = 0;
    const results = entries.map((entry) => (entry ? released[next++]! : this.unknown()));
    await failpoint('load-balancer.release.before-reply');
    return { results };
  }

  private unknown(): ReleaseReply {
    this.metrics.releases.inc({ reason: 'unknown' });
    return UNKNOWN;
  }

  private async run(pool: string, items: ReleaseEntry[]): Promise<ReleaseReply[]> {
    const reply = await this.store.release(pool, items);
    this.metrics.releasedAll(reply.results);
    for (const serverId of reply.broken ?? []) {
      this.metrics.serversBroken.inc({ pool });
      this.logger.warn({ pool, serverId }, 'Consecutive calls of a server failed: the server is suspect for a while');
    }
    this.waiters.sendAll(pool, reply);
    if (reply.unheard) this.prober.soon(pool);
    return reply.results;
  }
}

/** Outcome of a call for the breaker of the server; undefined: the breaker ignores the outcome. */
const COUNTED: Record<ReleaseOutcome, ReleaseEntry['outcome']> = {
  finished: 'finished',
  failed: 'failed',
  busy: 'busy',
  rejected: undefined,
  aborted: undefined,
  unclaimed: undefined,
};

/** The release in its stored form; undefined for a lease id that Broomwagon cannot have assigned. */
function toReleaseEntry(
  { leaseId, acquireId, outcome, retryAfterMs, tokens }: ReleaseItem,
  path: string,
): ReleaseEntry | undefined {
  const counted = { tokens, ...(COUNTED[outcome] && { outcome: COUNTED[outcome], retryAfterMs }) };
  const lease = leaseId === undefined ? undefined : parseLeaseId(leaseId);
  if (leaseId !== undefined) return lease && { ...lease, ...counted };
  if (acquireId !== undefined) return { acquireId, ...counted };
  throw new BroomwagonError('VALIDATION_FAILED', 'leaseId or acquireId is required', { field: `${path}leaseId` });
}
