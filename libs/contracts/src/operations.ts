import * as abort from './abort.dto';
import * as acquire from './acquire.dto';
import * as snapshot from './job-snapshot.dto';
import * as decision from './decision.dto';
import * as deletion from './deletion.dto';
import * as inspection from './inspection.dto';
import * as jobQuota from './job-quota.dto';
import * as jobReconcile from './job-reconcile.dto';
import * as job from './job.dto';
import * as lb from './lb.dto';
import * as ledger from './ledger.dto';
import * as longtail from './longtail.dto';
import * as payload from './payload.dto';
import * as pool from './pool.dto';
import * as prompt from './prompt.dto';
import * as rebalance from './rebalance.dto';
import * as request from './request.dto';
import * as results from './results.dto';
import * as roundCancel from './round-cancel.dto';
import * as reward from './reward.dto';
import * as round from './round.dto';
import * as server from './server.dto';
import * as weights from './weights.dto';
import * as worker from './worker.dto';

export const SUBJECT_ROOT = 'rollout.v1';
export type AppName = 'load-balancer' | 'trainer-coordinator' | 'worker' | 'admin-api' | 'engine-simulator';

type Constructor<T> = new () => T;
/** One operation of the protocol, with its service, request and reply. */
export interface Operation<Request extends object, Reply> {
  readonly owner: AppName;
  readonly request: Constructor<Request>;
  /** Only a type, because replies are not validated. */
  readonly reply?: Reply;
}
export function operation<Reply>() {
  return <Request extends object>(owner: AppName, requestClass: Constructor<Request>): Operation<Request, Reply> => ({
    owner,
    request: requestClass,
  });
}
const balancer = 'load-balancer';
const coordinator = 'trainer-coordinator';

/** Every request/reply operation, by the last part of its subject `rollout.v1.<pool>.<operation>`. */
export const OPERATIONS = {
  'lb.acquire': operation<lb.LeaseGrant>()(balancer, acquire.AcquireRequest),
  'lb.acquire-many': operation<lb.AcquireManyReply>()(balancer, lb.AcquireManyRequest),
  'lb.release': operation<lb.ReleaseReply>()(balancer, lb.ReleaseRequest),
  'lb.release-many': operation<lb.ReleaseManyReply>()(balancer, lb.ReleaseManyRequest),
  'lb.transfer': operation<lb.LeaseGrant>()(balancer, lb.TransferLeaseRequest),
  'lb.status': operation<lb.LoadBalancerStatus>()(balancer, lb.LoadBalancerStatusRequest),
  'lb.finish-session': operation<lb.FinishSessionReply>()(balancer, lb.FinishSessionRequest),
  'lb.cancel': operation<lb.CancelAcquireReply>()(balancer, lb.CancelAcquireRequest),
  'lb.clear-sessions': operation<lb.ClearSessionsReply>()(balancer, lb.ClearSessionsRequest),
  'lb.decisions': operation<decision.DecisionsReply>()(balancer, decision.DecisionsRequest),
  'pool.configure': operation<pool.PoolSettingsReply>()(balancer, pool.ConfigurePoolRequest),
  'pool.settings': operation<pool.PoolSettingsReply>()(balancer, pool.PoolSettingsRequest),
  'pool.history': operation<pool.PoolHistoryReply>()(balancer, pool.PoolHistoryRequest),
  'pool.rollback': operation<pool.PoolSettingsReply>()(balancer, pool.RollbackPoolRequest),
  'pool.find': operation<pool.FindPoolReply>()(balancer, pool.FindPoolRequest),
  'pool.pause': operation<pool.PausePoolReply>()(balancer, pool.PausePoolRequest),
  'pool.resume': operation<pool.PausePoolReply>()(balancer, pool.ResumePoolRequest),
  'server.register': operation<server.RegisterServerReply>()(balancer, server.RegisterServerRequest),
  'server.heartbeat': operation<server.ServerHeartbeatReply>()(balancer, server.ServerHeartbeatRequest),
  'server.remove': operation<server.RemoveServerReply>()(balancer, server.RemoveServerRequest),
  'server.update': operation<server.ServerChangeReply>()(balancer, server.UpdateServerRequest),
  'server.drain': operation<server.ServerChangeReply>()(balancer, server.DrainServerRequest),
  'server.cordon': operation<server.ServerChangeReply>()(balancer, server.CordonServerRequest),
  'server.uncordon': operation<server.ServerChangeReply>()(balancer, server.UncordonServerRequest),
  'server.fence': operation<server.FenceServerReply>()(balancer, server.FenceServerRequest),
  'server.reconcile': operation<server.ReconcileServerReply>()(balancer, server.ReconcileServerRequest),
  'server.quarantine': operation<server.FenceServerReply>()(balancer, server.QuarantineServerRequest),
  'server.get': operation<server.ServerStatus>()(balancer, server.GetServerRequest),
  'server.list': operation<server.ListServersReply>()(balancer, server.ListServersRequest),
  'worker.register': operation<worker.RegisterWorkerReply>()(balancer, worker.RegisterWorkerRequest),
  'worker.heartbeat': operation<worker.WorkerHeartbeatReply>()(balancer, worker.WorkerHeartbeatRequest),
  'worker.sync': operation<worker.SyncWorkerReply>()(balancer, worker.SyncWorkerRequest),
  'worker.deregister': operation<worker.DeregisterWorkerReply>()(balancer, worker.DeregisterWorkerRequest),
  'worker.list': operation<inspection.ListWorkersReply>()(balancer, inspection.ListWorkersRequest),
  'lb.leases': operation<inspection.ListLeasesReply>()(balancer, inspection.ListLeasesRequest),
  'lb.lease': operation<inspection.LeaseStatus>()(balancer, inspection.GetLeaseRequest),
  'lb.sessions': operation<inspection.ListSessionsReply>()(balancer, inspection.ListSessionsRequest),
  'pool.audit': operation<inspection.AuditPoolReply>()(coordinator, inspection.AuditPoolRequest),
  'round.list': operation<inspection.ListRoundsReply>()(coordinator, inspection.ListRoundsRequest),
  'group.list': operation<inspection.ListGroupsReply>()(coordinator, inspection.ListGroupsRequest),
  'request.get': operation<inspection.RequestDetails>()(coordinator, inspection.GetRequestRequest),
  'request.list': operation<inspection.ListRequestsReply>()(coordinator, inspection.ListRequestsRequest),
  'round.next': operation<round.NextRoundReply>()(coordinator, round.NextRoundRequest),
  'round.open': operation<round.OpenRoundReply>()(coordinator, round.OpenRoundRequest),
  'round.takeover': operation<round.TakeoverRoundReply>()(coordinator, round.TakeoverRoundRequest),
  'round.submit': operation<round.SubmitGroupsReply>()(coordinator, round.SubmitGroupsRequest),
  'round.status': operation<round.RoundStatus>()(coordinator, round.RoundStatusRequest),
  'round.results': operation<results.RoundResultsReply>()(coordinator, results.RoundResultsRequest),
  'round.reward': operation<reward.RewardGroupsReply>()(coordinator, reward.RewardGroupsRequest),
  'round.close': operation<results.CloseRoundReply>()(coordinator, results.CloseRoundRequest),
  'request.claim': operation<request.ClaimReply>()(coordinator, request.ClaimRequest),
  'request.segments': operation<request.RequestSegmentsReply>()(coordinator, request.RequestSegmentsRequest),
  'request.save': operation<request.SaveReply>()(coordinator, request.SaveRequest),
  'request.save-many': operation<request.SaveManyReply>()(coordinator, request.SaveManyRequest),
  'request.complete': operation<request.CompleteReply>()(coordinator, request.CompleteRequest),
  'request.complete-many': operation<request.CompleteManyReply>()(coordinator, request.CompleteManyRequest),
  'request.fail': operation<request.FailReply>()(coordinator, request.FailRequest),
  'request.abort': operation<abort.AbortRequestsReply>()(coordinator, abort.AbortRequestsRequest),
  'weights.begin': operation<weights.WeightSyncReply>()(coordinator, weights.BeginWeightsRequest),
  'weights.commit': operation<weights.WeightSyncReply>()(coordinator, weights.CommitWeightsRequest),
  'weights.rollback': operation<weights.WeightSyncReply>()(coordinator, weights.RollbackWeightsRequest),
  'weights.status': operation<weights.WeightsStatusReply>()(coordinator, weights.WeightsStatusRequest),
  'round.cancel': operation<roundCancel.CancelRoundReply>()(coordinator, roundCancel.CancelRoundRequest),
  'longtail.requeue': operation<longtail.RequeueReply>()(coordinator, longtail.RequeueRequest),
  'longtail.drop': operation<longtail.DropLongtailReply>()(coordinator, longtail.DropLongtailRequest),
  'longtail.stats': operation<longtail.LongtailStats>()(coordinator, longtail.LongtailStatsRequest),
  'longtail.list': operation<longtail.LongtailListReply>()(coordinator, longtail.LongtailListRequest),
  'job.configure': operation<jobQuota.ConfigureJobReply>()(coordinator, jobQuota.ConfigureJobRequest),
  'job.delete': operation<deletion.DeleteJobReply>()(coordinator, deletion.DeleteJobRequest),
  'pool.ledger': operation<ledger.PoolLedgerReply>()(coordinator, ledger.PoolLedgerRequest),
  'pool.delete': operation<deletion.DeletePoolReply>()(coordinator, deletion.DeletePoolRequest),
  'job.reconcile': operation<jobReconcile.ReconcileJobReply>()(coordinator, jobReconcile.ReconcileJobRequest),
  'job.snapshot': operation<snapshot.SnapshotJobReply>()(coordinator, snapshot.SnapshotJobRequest),
  'job.restore': operation<snapshot.RestoreJobReply>()(coordinator, snapshot.RestoreJobRequest),
  'job.snapshots': operation<snapshot.ListSnapshotsReply>()(coordinator, snapshot.ListSnapshotsRequest),
  'rebalance.configure': operation<rebalance.RebalanceSettings>()(coordinator, rebalance.ConfigureRebalanceRequest),
  'rebalance.plan': operation<rebalance.RebalanceStatus>()(coordinator, rebalance.PlanRebalanceRequest),
  'rebalance.execute': operation<rebalance.RebalanceStatus>()(coordinator, rebalance.ExecuteRebalanceRequest),
  'rebalance.status': operation<rebalance.RebalanceStatus>()(coordinator, rebalance.RebalanceStatusRequest),
  'job.status': operation<job.JobStatus>()(coordinator, job.JobStatusRequest),
  'job.list': operation<job.ListJobsReply>()(coordinator, job.ListJobsRequest),
  'job.ledger': operation<ledger.JobLedgerReply>()(coordinator, ledger.JobLedgerRequest),
  'prompt.remember': operation<prompt.RememberPromptsReply>()(coordinator, prompt.RememberPromptsRequest),
  'prompt.lengths': operation<prompt.PromptLengthsReply>()(coordinator, prompt.PromptLengthsRequest),
  'payload.put': operation<payload.PutPayloadReply>()(coordinator, payload.PutPayloadRequest),
  'payload.get': operation<payload.GetPayloadReply>()(coordinator, payload.GetPayloadRequest),
  'payload.get-many': operation<payload.GetPayloadsReply>()(coordinator, payload.GetPayloadsRequest),
  'payload.stat': operation<payload.StatPayloadReply>()(coordinator, payload.StatPayloadRequest),
} as const;

export type OperationName = keyof typeof OPERATIONS;
export type RequestOf<Name extends OperationName> =
  (typeof OPERATIONS)[Name] extends Operation<infer Request, unknown> ? Request : never;
export type ReplyOf<Name extends OperationName> =
  (typeof OPERATIONS)[Name] extends Operation<object, infer Reply> ? Reply : never;

/** Text in place of a pool in the subject of `pool.find`: any load-balancer answers, also for an unknown pool. */
export const NO_POOL = '-';

export function buildSubject(pool: string, name: OperationName): string {
  return `${SUBJECT_ROOT}.${pool}.${name}`;
}
/** Pattern that a handler declares. The transport replaces the wildcard by the pools of its configuration. */
export function buildPattern<Name extends OperationName>(name: Name): `rollout.v1.*.${Name}` {
  return `${SUBJECT_ROOT}.*.${name}`;
}
/** Patterns that cover the subjects of all operations, one for each first part of the operation names. */
export const OPERATION_PATTERNS: readonly string[] = [
  ...new Set(Object.keys(OPERATIONS).map((name) => `${SUBJECT_ROOT}.*.${name.slice(0, name.indexOf('.'))}.*`)),
];
/** Subject of an operation that only one replica takes. */
export function replicaSubject(replicaId: string, pool: string, operation: string): string {
  return `${SUBJECT_ROOT}.${pool}.replica.${replicaId}.${operation}`;
}
/** Subject on which one worker takes commands. */
export function workerCommandSubject(pool: string, workerId: string, command: 'abort' | 'move'): string {
  return `${SUBJECT_ROOT}.${pool}.worker.${workerId}.${command}`;
}
/** Subject on which each gateway replica of a pool takes commands from other replicas. */
export function gatewaySubject(pool: string, command: 'abort'): string {
  return `${SUBJECT_ROOT}.${pool}.gateway.${command}`;
}
/** Subject of an event, e.g. `round.completed`. */
export function eventSubject(pool: string, event: string): string {
  return `${SUBJECT_ROOT}.${pool}.event.${event}`;
}
/** JetStream stream of all events of all pools. */
export const EVENTS_STREAM = 'BROOMWAGON_EVENTS';
/**
 * JetStream stream of the audit log of admin-api. Subjects of changes outside all pools have `-` in place of a pool.
 */
export const AUDIT_STREAM = 'BROOMWAGON_AUDIT';
export function auditSubject(pool: string, operation: string): string {
  return `${SUBJECT_ROOT}.${pool}.audit.${operation}`;
}
