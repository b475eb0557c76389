import { Injectable } from '@nestjs/common';
import type { AdminOperationName, AdminReplyOf, AdminRequestOf } from '@broomwagon/contracts';
import { CredentialStore, PoolDirectory } from '@broomwagon/state';
import { AuditLog } from '../audit/audit-log';
import { LostChanges } from '../audit/lost-changes';
import type { Identity } from '../auth/identity';
import { JobFrontier } from '../reports/job-frontier';
import { RoundTimeline } from '../reports/round-timeline';
import { LogLevels } from './log-levels';
import { Readiness } from './readiness';

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
    timeline: RoundTimeline,
    frontier: JobFrontier,
    logLevels: LogLevels,
    lostChanges: LostChanges,
    readiness: Readiness,
  ) {
    this.handlers = {
      'pool.list': async (_, { pools: allowed }) => {
        const pools = await directory.list();
        return { pools: pools.filter((pool) => allowed?.includes(pool) ?? true) };
      },
      'pool.lost-changes': async (_, __, pool) => lostChanges.list(pool),
      'identity.get': async (_, { id, name, role, pools }) => ({ id, name, role, pools: pools && [...pools] }),
      'token.create': (request) => credentials.create(request),
      'token.list': async () => ({ tokens: await credentials.list() }),
      'audit-log.list': (request) => audit.list(request),
      'token.revoke': async ({ tokenId }) => ({ revoked: await credentials.revoke(tokenId) }),
      'round.timeline': (request, _, pool) => timeline.read(pool, request),
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
