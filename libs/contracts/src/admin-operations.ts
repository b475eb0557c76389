import * as admin from './admin.dto';
import type { PoolEvent } from './events';
import {
  JobFrontierRequest,
  RoundTimelineRequest,
  type JobFrontierReply,
  type RoundTimelineReply,
} from './timeline.dto';
import { SetLogLevelRequest, type ReplicasLogLevelReply } from './log-level.dto';
import { GetReadinessRequest, type ReplicasReadinessReply } from './readiness.dto';
import { ExplainRoundRequest, type ExplainRoundReply } from './explanation.dto';
import { GetOverviewRequest, type OverviewReply } from './overview.dto';
import { ListServerCallsRequest, type ListServerCallsReply } from './server-calls.dto';
import { operation, type Operation, OPERATIONS } from './operations';

const api = 'admin-api';

/**
 * Operations that admin-api handles itself, without NATS. Each of these operations concerns several pools or secrets,
 * asks all replicas, or reads a stream.
 */
export const ADMIN_OPERATIONS = {
  'pool.list': operation<admin.ListPoolsReply>()(api, admin.ListPoolsRequest),
  'pool.overview': operation<OverviewReply>()(api, GetOverviewRequest),
  'pool.lost-changes': operation<admin.LostChangesReply>()(api, admin.ListLostChangesRequest),
  'identity.get': operation<admin.IdentityReply>()(api, admin.GetIdentityRequest),
  'token.create': operation<admin.CreateTokenReply>()(api, admin.CreateTokenRequest),
  'token.get': operation<admin.TokenStatus>()(api, admin.GetTokenRequest),
  'token.list': operation<admin.ListTokensReply>()(api, admin.ListTokensRequest),
  'token.revoke': operation<admin.RevokeTokenReply>()(api, admin.RevokeTokenRequest),
  'event.stream': operation<PoolEvent>()(api, admin.StreamEventsRequest),
  'event.list': operation<admin.ListEventsReply>()(api, admin.ListEventsRequest),
  'request.totals': operation<admin.RequestTotalsReply>()(api, admin.RequestTotalsRequest),
  'round.history': operation<admin.RoundHistoryReply>()(api, admin.RoundHistoryRequest),
  'round.explain': operation<ExplainRoundReply>()(api, ExplainRoundRequest),
  'round.timeline': operation<RoundTimelineReply>()(api, RoundTimelineRequest),
  'job.frontier': operation<JobFrontierReply>()(api, JobFrontierRequest),
  'server.calls': operation<ListServerCallsReply>()(api, ListServerCallsRequest),
  'service.readiness': operation<ReplicasReadinessReply>()(api, GetReadinessRequest),
  'service.log-level': operation<ReplicasLogLevelReply>()(api, SetLogLevelRequest),
  'audit-log.list': operation<admin.ListAuditLogReply>()(api, admin.ListAuditLogRequest),
} as const;

export type AdminOperationName = keyof typeof ADMIN_OPERATIONS;
/** All operations that have a route. */
export const REST_OPERATIONS = { ...OPERATIONS, ...ADMIN_OPERATIONS };
export type RestOperationName = keyof typeof REST_OPERATIONS;
export type AdminRequestOf<Name extends AdminOperationName> =
  (typeof ADMIN_OPERATIONS)[Name] extends Operation<infer Request, unknown> ? Request : never;
export type AdminReplyOf<Name extends AdminOperationName> =
  (typeof ADMIN_OPERATIONS)[Name] extends Operation<object, infer Reply> ? Reply : never;
