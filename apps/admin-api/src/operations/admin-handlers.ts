import { Injectable } from '@nestjs/common';
import type { AdminOperationName, AdminReplyOf, AdminRequestOf } from '@broomwagon/contracts';
import { CredentialStore, PoolDirectory } from '@broomwagon/state';
import { AuditLog } from '../changes/audit-log';
import type { Identity } from '../auth/identity';

/** All but the stream, which is no reply. */
type ReplyName = Exclude<AdminOperationName, 'event.stream'>;
type Handlers = {
  [Name in ReplyName]: (body: AdminRequestOf<Name>, identity: Identity) => Promise<AdminReplyOf<Name>>;
};

/** The operations of ADMIN_OPERATIONS: one entry each. */
@Injectable()
export class AdminHandlers {
  private readonly handlers: Handlers;

  constructor(credentials: CredentialStore, directory: PoolDirectory, audit: AuditLog) {
    this.handlers = {
      'pool.list': async (_, { pools: allowed }) => {
        const pools = await directory.list();
        return { pools: pools.filter((pool) => allowed?.includes(pool) ?? true) };
      },
      'identity.get': async (_, { id, name, role, pools }) => ({ id, name, role, pools: pools && [...pools] }),
      'token.create': (request) => credentials.create(request),
      'token.list': async () => ({ tokens: await credentials.list() }),
      'audit-log.list': (request) => audit.list(request),
      'token.revoke': async ({ tokenId }) => ({ revoked: await credentials.revoke(tokenId) }),
    };
  }

  handle(operation: ReplyName, request: object, identity: Identity): Promise<object> {
    return this.handlers[operation](request as never, identity);
  }
}
