import { Injectable } from '@nestjs/common';
import { ADMIN_OPERATIONS, type JobId, OPERATIONS, type RestOperationName, type Route } from '@broomwagon/contracts';
import { type JsonObject, TypedClient, validate } from '@broomwagon/messaging';
import { AdminApiConfig } from '../admin-api.config';
import type { Identity } from '../auth/identity';
import { AdminHandlers } from './admin-handlers';

/** Calls operations: those of the protocol over NATS, those of admin-api here. */
@Injectable()
export class OperationCaller {
  constructor(
    private readonly client: TypedClient,
    private readonly handlers: AdminHandlers,
    private readonly config: AdminApiConfig,
  ) {}

  /** @throws BroomwagonError of the operation */
  async call(route: Route, pool: string | undefined, body: JsonObject, identity: Identity): Promise<object> {
    const { operation, asTrainer } = route;
    if (isAdmin(operation)) {
      const request = validate(ADMIN_OPERATIONS[operation].request as new () => object, body);
      return this.handlers.handle(operation as Exclude<typeof operation, 'event.stream'>, request, identity);
    }
    const waitMs = Number(body.waitMs) || 0;
    const options = { timeoutMs: this.config.callTimeoutMs + Math.max(0, waitMs) };
    if (asTrainer && body.trainerEpoch === undefined) {
      const { trainerEpoch } = await this.client.call(pool!, 'job.status', { job: body.job as JobId }, options);
      body = { ...body, trainerEpoch };
    }
    return this.client.call(pool!, operation, body as never, options);
  }
}

function isAdmin(operation: RestOperationName): operation is keyof typeof ADMIN_OPERATIONS {
  return !Object.hasOwn(OPERATIONS, operation);
}
