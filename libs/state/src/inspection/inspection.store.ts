import { Injectable } from '@nestjs/common';
import {
  LIMITS,
  type DecisionsReply,
  type DecisionsRequest,
  type ListLeasesReply,
  type ListLeasesRequest,
  type ListRequestsReply,
  type ListRequestsRequest,
  type ListWorkersReply,
  type PoolName,
} from '@broomwagon/contracts';
import { transition, FunctionRunner } from '../library/function-runner';

interface Cursor {
  cursor: string;
}
type RawDecisions = Pick<DecisionsReply, 'decisions'> & { more: boolean };

const workers = transition<Cursor, ListWorkersReply & Cursor>('inspection/workers');
const leases = transition<ListLeasesRequest & Cursor, ListLeasesReply & Cursor>('inspection/leases');
const requests = transition<ListRequestsRequest & Cursor & { minAgeMs: number }, ListRequestsReply & Cursor>(
  'inspection/requests',
);
const decisions = transition<Omit<Required<DecisionsRequest>, 'cursor'> & { before?: number }, RawDecisions>(
  'inspection/decisions',
);

/** Who holds what, page by page. Changes nothing; every method throws UNAVAILABLE too. */
@Injectable()
export class InspectionStore {
  constructor(private readonly scripts: FunctionRunner) {}

  async workers(pool: PoolName, cursor = '0'): Promise<ListWorkersReply> {
    const page = await this.scripts.run(workers, pool, { cursor });
    return { workers: oldestFirst(page.workers, 'heartbeatAgeMs'), ...next(page) };
  }

  /** @throws SERVER_NOT_FOUND, WORKER_NOT_FOUND */
  async leases(pool: PoolName, { cursor = '0', ...selector }: ListLeasesRequest): Promise<ListLeasesReply> {
    const page = await this.scripts.run(leases, pool, { ...selector, cursor });
    return { leases: oldestFirst(page.leases, 'ageMs'), ...next(page) };
  }

  /** @throws JOB_NOT_FOUND, ROUND_NOT_FOUND, WORKER_NOT_FOUND */
  async requests(
    pool: PoolName,
    { cursor = '0', minAgeMs = 0, ...selector }: ListRequestsRequest,
  ): Promise<ListRequestsReply> {
    const page = await this.scripts.run(requests, pool, { ...selector, minAgeMs, cursor });
    return { requests: page.requests, ...next(page) };
  }

  /** Recent decisions, the latest first. */
  async decisions(
    pool: PoolName,
    { full = false, limit = LIMITS.page, cursor }: DecisionsRequest,
  ): Promise<DecisionsReply> {
    const page = await this.scripts.run(decisions, pool, {
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
