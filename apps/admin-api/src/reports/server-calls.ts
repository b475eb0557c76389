import { Injectable } from '@nestjs/common';
import type {
  LeaseStatus,
  ListServerCallsReply,
  ListServerCallsRequest,
  PoolName,
  ServerCall,
} from '@broomwagon/contracts';
import { TypedClient } from '@broomwagon/messaging';
import { AdminApiConfig } from '../admin-api.config';

/** Default of calls in one page: each call of a round is one more read. */
const DEFAULT_CALLS = 32;

/** Reads the leases of a server, and the requests of rounds that hold the leases. */
@Injectable()
export class ServerCalls {
  constructor(
    private readonly client: TypedClient,
    private readonly config: AdminApiConfig,
  ) {}

  /** @throws BroomwagonError SERVER_NOT_FOUND, UNAVAILABLE */
  async list(
    pool: PoolName,
    { serverId, cursor, limit = DEFAULT_CALLS }: ListServerCallsRequest,
  ): Promise<ListServerCallsReply> {
    const options = { timeoutMs: this.config.callTimeoutMs };
    const [page, server] = await Promise.all([
      this.client.call(pool, 'lb.leases', { serverId, cursor, limit }, options),
      this.client.call(pool, 'server.get', { serverId }, options),
    ]);
    const calls = await Promise.all(page.leases.map((lease) => this.readCall(pool, lease)));
    const { state, inflight, load } = server;
    const { running: engineRunning, waiting: engineWaiting } = load ?? {};
    return { serverId, state, inflight, engineRunning, engineWaiting, calls, cursor: page.cursor };
  }

  /** The call of a lease. A request that is no request of a round, or that has just ended, has only its lease. */
  private async readCall(pool: PoolName, lease: LeaseStatus): Promise<ServerCall> {
    const { leaseId, requestId, workerId, sessionId, ageMs } = lease;
    const call = { leaseId, requestId, workerId, sessionId, ageMs };
    if (lease.attempt === undefined) return call;
    const request = { requestId };
    const found = await this.client
      .call(pool, 'request.get', request, { timeoutMs: this.config.callTimeoutMs })
      .catch(() => undefined);
    if (found?.attempt !== lease.attempt) return call;
    const { job, roundId, state, tokenCount, failures } = found;
    return { ...call, job, roundId, state, tokenCount, failures };
  }
}
