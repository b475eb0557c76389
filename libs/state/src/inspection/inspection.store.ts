import { Injectable } from '@nestjs/common';
import {
  LIMITS,
  type DecisionsReply,
  type DecisionsRequest,
  type LeaseId,
  type LeaseStatus,
  type ListGroupsReply,
  type ListGroupsRequest,
  type ListLeasesReply,
  type ListLeasesRequest,
  type ListRequestsReply,
  type ListRequestsRequest,
  type ListRoundsReply,
  type ListRoundsRequest,
  type ListSessionsReply,
  type ListSessionsRequest,
  type ListWorkersReply,
  type ListWorkersRequest,
  type PoolName,
  type RequestDetails,
  type RequestId,
} from '@broomwagon/contracts';
import { transition } from '../library/function-runner';
import { createStoreClass } from '../library/store-of';

const decisions = transition<DecisionsRequest & { limit: number }, DecisionsReply>('inspection/decisions');

/** Reads workers, leases, requests, sessions, groups and rounds, page by page. Changes nothing. */
@Injectable()
export class InspectionStore extends createStoreClass({
  workers: transition<ListWorkersRequest, ListWorkersReply>('inspection/workers'),
  leases: transition<ListLeasesRequest & { leaseId?: LeaseId }, ListLeasesReply>('inspection/leases'),
  requests: transition<ListRequestsRequest, ListRequestsReply>('inspection/requests'),
  sessions: transition<ListSessionsRequest, ListSessionsReply>('inspection/sessions'),
  groups: transition<ListGroupsRequest, ListGroupsReply>('inspection/groups'),
  request: transition<{ requestId: RequestId }, RequestDetails>('inspection/request'),
  rounds: transition<ListRoundsRequest, ListRoundsReply>('inspection/rounds'),
}) {
  /** @throws LEASE_NOT_FOUND */
  async lease(pool: PoolName, leaseId: LeaseId): Promise<LeaseStatus> {
    return (await this.leases(pool, { leaseId })).leases[0]!;
  }

  /** Recent decisions, the latest first. */
  decisions(pool: PoolName, { limit = LIMITS.page, ...request }: DecisionsRequest): Promise<DecisionsReply> {
    const most = request.full ? LIMITS.explainsPerCall : LIMITS.page;
    return this.runner.run(decisions, pool, { ...request, limit: Math.min(limit, most) });
  }
}
