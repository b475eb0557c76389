import { Injectable } from '@nestjs/common';
import {
  isBroomwagonError,
  type PoolName,
  type RequestId,
  type RequestTotalsReply,
  type RequestTotalsRequest,
  type ServerId,
} from '@broomwagon/contracts';
import { TypedClient } from '@broomwagon/messaging';
import { AdminApiConfig } from '../admin-api.config';

/** Maximum requests that are read: of a server one by one, of a round in pages. */
const MAX_OF_SERVER = 1_024;
const MAX_OF_ROUND = 65_536;
/** Calls at the same time. */
const PARALLEL = 32;

/** Counts requests and their tokens before an operator stops them. */
@Injectable()
export class RequestTotals {
  constructor(
    private readonly client: TypedClient,
    private readonly config: AdminApiConfig,
  ) {}

  /** @throws BroomwagonError JOB_NOT_FOUND, ROUND_NOT_FOUND, GROUP_NOT_FOUND, SERVER_NOT_FOUND, UNAVAILABLE */
  read(pool: PoolName, { serverId, ...selector }: RequestTotalsRequest): Promise<RequestTotalsReply> {
    return serverId === undefined ? this.readList(pool, selector) : this.readServer(pool, serverId);
  }

  /** Reads the requests of a round or a group. */
  private async readList(
    pool: PoolName,
    selector: Omit<RequestTotalsRequest, 'serverId'>,
  ): Promise<RequestTotalsReply> {
    const totals: RequestTotalsReply = { requests: 0, tokens: 0, withoutTokens: 0 };
    let cursor: string | undefined;
    do {
      const page = await this.client.call(pool, 'request.list', { ...selector, cursor }, this.options);
      totals.requests += page.requests.length;
      for (const { tokenCount } of page.requests) totals.tokens += tokenCount;
      ({ cursor } = page);
      if (totals.requests >= MAX_OF_ROUND && cursor !== undefined) return { ...totals, isPartial: true };
    } while (cursor !== undefined);
    return totals;
  }

  private async readServer(pool: PoolName, serverId: ServerId): Promise<RequestTotalsReply> {
    const requestIds: RequestId[] = [];
    let cursor: string | undefined;
    do {
      const page = await this.client.call(pool, 'lb.leases', { serverId, cursor }, this.options);
      requestIds.push(...page.leases.map(({ requestId }) => requestId));
      ({ cursor } = page);
    } while (cursor !== undefined && requestIds.length < MAX_OF_SERVER);
    const read = requestIds.slice(0, MAX_OF_SERVER);
    const tokens: (number | undefined)[] = [];
    for (let from = 0; from < read.length; from += PARALLEL) {
      const part = read.slice(from, from + PARALLEL);
      tokens.push(...(await Promise.all(part.map((requestId) => this.readTokens(pool, requestId)))));
    }
    const known = tokens.filter((one) => one !== undefined);
    return {
      requests: read.length,
      tokens: known.reduce((sum, one) => sum + one, 0),
      withoutTokens: read.length - known.length,
      ...(cursor !== undefined || read.length < requestIds.length ? { isPartial: true } : {}),
    };
  }

  /** Tokens of a request of a job; undefined for any other lease. */
  private async readTokens(pool: PoolName, requestId: RequestId): Promise<number | undefined> {
    try {
      return (await this.client.call(pool, 'request.get', { requestId }, this.options)).tokenCount;
    } catch (error) {
      if (isBroomwagonError(error, 'REQUEST_NOT_FOUND') || isBroomwagonError(error, 'VALIDATION_FAILED'))
        return undefined;
      throw error;
    }
  }

  private get options() {
    return { timeoutMs: this.config.callTimeoutMs };
  }
}
