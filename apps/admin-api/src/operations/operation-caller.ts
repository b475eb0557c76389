import { Injectable } from '@nestjs/common';
import {
  ADMIN_OPERATIONS,
  BroomwagonError,
  isBroomwagonError,
  type JobId,
  OPERATIONS,
  type RestOperationName,
  type Route,
} from '@broomwagon/contracts';
import { type JsonObject, TypedClient, validate, readWaitMs } from '@broomwagon/messaging';
import { PoolDirectory } from '@broomwagon/state';
import { AdminApiConfig } from '../admin-api.config';
import type { Identity } from '../auth/identity';
import { AdminHandlers, type HandledName } from './admin-handlers';

/**
 * Changes that need no existing pool: `server.register` creates the pool, a deletion may be a repeat, and
 * `service.log-level` does not use Redis.
 */
const WITHOUT_POOL: ReadonlySet<RestOperationName> = new Set([
  'server.register',
  'pool.delete',
  'job.delete',
  'service.log-level',
]);

/** Calls operations: operations of the protocol over NATS, and operations of admin-api in this process. */
@Injectable()
export class OperationCaller {
  constructor(
    private readonly client: TypedClient,
    private readonly handlers: AdminHandlers,
    private readonly config: AdminApiConfig,
    private readonly directory: PoolDirectory,
  ) {}

  /** @throws BroomwagonError of the operation; POOL_NOT_FOUND */
  async call(
    route: Route,
    pool: string | undefined,
    body: JsonObject,
    identity: Identity,
    timeoutMs = this.config.callTimeoutMs,
  ): Promise<object> {
    const { method, operation, asTrainer } = route;
    const options = { timeoutMs: timeoutMs + readWaitMs(body) };
    if (pool !== undefined && method !== 'GET' && !WITHOUT_POOL.has(operation)) await this.checkPool(pool);
    try {
      if (isAdmin(operation)) {
        const request = validate(ADMIN_OPERATIONS[operation].request as new () => object, body);
        return await this.handlers.handle(operation as HandledName, request, identity, pool);
      }
      if (asTrainer && body.trainerEpoch === undefined) {
        const { trainerEpoch } = await this.client.call(pool!, 'job.status', { job: body.job as JobId }, options);
        body = { ...body, trainerEpoch };
      }
      return await this.client.call(pool!, operation, body as never, options);
    } catch (error) {
      // No service may answer because the pool does not exist: then the error is POOL_NOT_FOUND. If a JetStream stream
      // stores requests, NATS does not report that no service listens, and a read ends in TIMEOUT.
      const isUnserved =
        isBroomwagonError(error, 'UNAVAILABLE') || (method === 'GET' && isBroomwagonError(error, 'TIMEOUT'));
      if (pool !== undefined && isUnserved) await this.checkPool(pool, error);
      throw error;
    }
  }

  private async checkPool(pool: string, cause?: unknown): Promise<void> {
    if ((await this.directory.list()).includes(pool)) return;
    throw new BroomwagonError('POOL_NOT_FOUND', `There is no pool ${pool}`, { field: 'pool', cause });
  }
}

function isAdmin(operation: RestOperationName): operation is keyof typeof ADMIN_OPERATIONS {
  return !Object.hasOwn(OPERATIONS, operation);
}
