import { Injectable } from '@nestjs/common';
import {
  type AdminOperationName,
  type AdminReplyOf,
  type AdminRequestOf,
  BroomwagonError,
  type TokenStatus,
} from '@broomwagon/contracts';
import { CredentialStore, PoolDirectory } from '@broomwagon/state';
import { AuditLog } from '../audit/audit-log';
import { LostChanges } from '../audit/lost-changes';
import type { Identity } from '../auth/identity';
import { JobFrontier } from '../reports/job-frontier';
import { EventHistory } from '../reports/event-history';
import { Overview } from '../reports/overview';
import { RequestTotals } from '../reports/request-totals';
import { RoundExplanation } from '../reports/explanation/round-explanation';
import { RoundTimeline } from '../reports/round-timeline';
import { ServerCalls } from '../reports/server-calls';
import { LogLevels } from './log-levels';
import { Readiness } from '../reports/readiness';

/** All operations of admin-api except `event.stream`, which has no reply. */
export type HandledName = Exclude<AdminOperationName, 'event.stream'>;
type Handlers = {
  [Name in HandledName]: (body: AdminRequestOf<Name>, identity: Identity, pool: string) => Promise<AdminReplyOf<Name>>;
};

/** A handler for each operation of ADMIN_OPERATIONS. */
@Injectable()
export class AdminHandlers {
  private readonly handlers: Handlers;

  constructor(
    credentials: CredentialStore,
    directory: PoolDirectory,
    audit: AuditLog,
    explanation: RoundExplanation,
    timeline: RoundTimeline,
    frontier: JobFrontier,
    logLevels: LogLevels,
    lostChanges: LostChanges,
    readiness: Readiness,
    overview: Overview,
    history: EventHistory,
    totals: RequestTotals,
    serverCalls: ServerCalls,
  ) {
    this.handlers = {
      'pool.list': async (request, { pools: allowed }) => {
        const pools = (await directory.list()).filter((pool) => allowed?.includes(pool) ?? true);
        const { entries, cursor } = takePage(pools, (pool) => pool, request);
        return { pools: entries, cursor };
      },
      'pool.overview': (_, __, pool) => overview.read(pool),
      'pool.lost-changes': async ({ limit }, _, pool) => lostChanges.list(pool, limit),
      'identity.get': async (_, { id, name, role, pools }) => ({ id, name, role, pools: pools && [...pools] }),
      'token.create': (request) => credentials.create(request),
      'token.get': async ({ tokenId }) => {
        const found = await credentials.get(tokenId);
        if (found) return found;
        throw new BroomwagonError('TOKEN_NOT_FOUND', `There is no token ${tokenId}`, { field: 'tokenId' });
      },
      'token.list': async (request) => {
        const { entries: tokens, cursor } = takePage(await credentials.list(), getTokenPlace, request);
        return { tokens, cursor };
      },
      'audit-log.list': (request) => audit.list(request),
      'token.revoke': async ({ tokenId }) => ({ revoked: await credentials.revoke(tokenId) }),
      'event.list': (request, _, pool) => history.list(pool, request),
      'round.history': (request, _, pool) => history.listRounds(pool, request),
      'request.totals': (request, _, pool) => totals.read(pool, request),
      'round.explain': (request, _, pool) => explanation.read(pool, request),
      'round.timeline': (request, _, pool) => timeline.read(pool, request),
      'server.calls': (request, _, pool) => serverCalls.list(pool, request),
      'service.log-level': (request, _, pool) => logLevels.set(pool, request),
      'service.readiness': (_, __, pool) => readiness.read(pool),
      'job.frontier': ({ job }, _, pool) => frontier.read(pool, job),
    };
  }

  /** @param pool pool of the path; set for each operation that needs a pool */
  handle(operation: HandledName, request: object, identity: Identity, pool = ''): Promise<object> {
    return this.handlers[operation](request as never, identity, pool);
  }
}

/**
 * Takes one page of a sorted list.
 * @param getPlace text by which the list is sorted: the cursor of a page is the place of its last entry
 */
function takePage<Entry>(
  list: readonly Entry[],
  getPlace: (entry: Entry) => string,
  { cursor, limit = Infinity }: { cursor?: string; limit?: number },
): { entries: Entry[]; cursor?: string } {
  const following = list.filter((entry) => cursor === undefined || getPlace(entry) > cursor);
  const entries = following.slice(0, limit);
  return following.length > limit ? { entries, cursor: getPlace(entries.at(-1)!) } : { entries };
}

/** Tokens are sorted by the time of their creation, then by id. */
function getTokenPlace({ createdAtMs, tokenId }: TokenStatus): string {
  return `${String(createdAtMs).padStart(14, '0')}-${tokenId}`;
}
