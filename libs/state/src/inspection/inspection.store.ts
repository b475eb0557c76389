import { Injectable } from '@nestjs/common';
import {
  LIMITS,
  type DecisionsReply,
  type DecisionsRequest,
  type JobId,
  type LeaseId,
  type LeaseStatus,
  type ListGroupsReply,
  type ListGroupsRequest,
  type ListLeasesReply,
  type ListLeasesRequest,
  type ListRequestsReply,
  type ListRequestsRequest,
  type ListRoundsReply,
  type ListSessionsReply,
  type ListSessionsRequest,
  type ListWorkersReply,
  type PoolName,
  type RequestDetails,
  type RequestId,
} from '@broomwagon/contracts';
import { transition } from '../library/function-runner';
import { storeOf } from '../library/store-of';

interface Cursor {
  cursor: string;
}
type RawDecisions = Pick<DecisionsReply, 'decisions'> & { more: boolean };

const workers = transition<Cursor, ListWorkersReply & Cursor>('inspection/workers');
const leases = transition<ListLeasesRequest & Cursor & { leaseId?: LeaseId }, ListLeasesReply & Cursor>(
  'inspection/leases',
);
const requests = transition<ListRequestsRequest & Cursor & { minAgeMs: number }, ListRequestsReply & Cursor>(
  'inspection/requests',
);
const sessions = transition<ListSessionsRequest & Cursor, ListSessionsReply & Cursor>('inspection/sessions');
const groups = transition<ListGroupsRequest, ListGroupsReply>('inspection/groups');
const decisions = transition<Omit<Required<DecisionsRequest>, 'cursor'> & { before?: number }, RawDecisions>(
  'inspection/decisions',
);

/** Who holds what, page by page. Changes nothing; every method throws UNAVAILABLE too. */
@Injectable()
export class InspectionStore extends storeOf({
  request: transition<{ requestId: RequestId }, RequestDetails>('inspection/request'),
  rounds: transition<{ job: JobId }, ListRoundsReply>('inspection/rounds'),
}) {
  async workers(pool: PoolName, cursor = '0'): Promise<ListWorkersReply> {
    const page = await this.runner.run(workers, pool, { cursor });
    return { workers: oldestFirst(page.workers, 'heartbeatAgeMs'), ...next(page) };
  }

  /** @throws SERVER_NOT_FOUND, WORKER_NOT_FOUND */
  async leases(pool: PoolName, { cursor = '0', ...selector }: ListLeasesRequest): Promise<ListLeasesReply> {
    const page = await this.runner.run(leases, pool, { ...selector, cursor });
    return { leases: oldestFirst(page.leases, 'ageMs'), ...next(page) };
  }

  /** @throws LEASE_NOT_FOUND */
  async lease(pool: PoolName, leaseId: LeaseId): Promise<LeaseStatus> {
    const page = await this.runner.run(leases, pool, { leaseId, cursor: '0' });
    return page.leases[0]!;
  }

  /** @throws JOB_NOT_FOUND, ROUND_NOT_FOUND, WORKER_NOT_FOUND */
  async requests(
    pool: PoolName,
    { cursor = '0', minAgeMs = 0, ...selector }: ListRequestsRequest,
  ): Promise<ListRequestsReply> {
    const page = await this.runner.run(requests, pool, { ...selector, minAgeMs, cursor });
    return { requests: page.requests, ...next(page) };
  }

  /** One page of the sessions. */
  async sessions(pool: PoolName, { cursor = '0', serverId }: ListSessionsRequest): Promise<ListSessionsReply> {
    const page = await this.runner.run(sessions, pool, { serverId, cursor });
    return { sessions: page.sessions, ...next(page) };
  }

  /** @throws JOB_NOT_FOUND, ROUND_NOT_FOUND */
  groups(pool: PoolName, { set = 'live', cursor = 0, ...selector }: ListGroupsRequest): Promise<ListGroupsReply> {
    return this.runner.run(groups, pool, { ...selector, set, cursor });
  }

  /** Recent decisions, the latest first. */
  async decisions(
    pool: PoolName,
    { full = false, limit = LIMITS.page, cursor }: DecisionsRequest,
  ): Promise<DecisionsReply> {
    const page = await this.runner.run(decisions, pool, {
      full,
      limit: full ? Math.min(limit, LIMITS.explainsPerCall) : limit,
      before: cursor === undefined ? undefined : Number(cursor),
    });
    const last = page.decisions.at(-1);
    return { decisions: page.decisions, ...(page.more && last ? { cursor: String(last.seq) } : {}) };
  }
}

function oldestFirst<Field extends string, Item extends Record<Field, number>>(items: Item[], field: Field): Item[] {
  return items.toSorted((one, other) => other[field] - one[field]);
}

/** Redis says the end of a scan by the cursor it begins with; we by none. */
function next({ cursor }: Cursor): { cursor?: string } {
  return cursor === '0' ? {} : { cursor };
}
