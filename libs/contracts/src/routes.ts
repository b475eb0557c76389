import type { RestOperationName } from './admin-operations';
import type { Role } from './admin.dto';

export type HttpMethod = 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';

/**
 * One route of admin-api. A `{field}` of the path is the field of the request with this name, and `{pool}` is the pool
 * of the subject. All other fields come from the query (GET, DELETE) or from the JSON body.
 */
export interface Route {
  readonly method: HttpMethod;
  /** Path below {@link API_ROOT}. */
  readonly path: string;
  readonly operation: RestOperationName;
  /** Lowest role that may use the route. */
  readonly role: Role;
  /** Name in generated clients; default: the name of the operation in camel case. */
  readonly id?: string;
  /** Description of the operation; default: the comment of the request class. */
  readonly about?: string;
  /** Fields with a fixed value, which a caller cannot give. */
  readonly values?: Readonly<Record<string, unknown>>;
  /** Fields that a caller may give; default: all. */
  readonly fields?: readonly string[];
  /**
   * Field with an id that makes a repeat harmless. Default: an id from caller and `Idempotency-Key`, or a random id.
   */
  readonly idField?: string;
  /** True if a repeat has no second effect, because the request names an epoch, a lease, an attempt or a plan. */
  readonly isFenced?: true;
  /**
   * True if an operator may act in place of the trainer: an absent `trainerEpoch` becomes the epoch of the present
   * trainer.
   */
  readonly asTrainer?: true;
  /**
   * True if the reply has a secret `token`. The reply is not stored for an `Idempotency-Key`, and the audit log omits
   * the token.
   */
  readonly isSecret?: true;
  /** True if the reply is a stream of server-sent events. */
  readonly isStream?: true;
  /** True if the reply has the entries of all pages as JSON lines (`application/x-ndjson`). */
  readonly isExport?: true;
  /** Field of the reply that becomes the `ETag`, or field of the request that gets the value of `If-Match`. */
  readonly versionField?: string;
  /** What the route creates: the path of its read, and whether each call creates another one. */
  readonly creates?: { readonly path: string; readonly isAlwaysNew?: true };
  /** Read operation with the same ids. The audit log has its replies before and after the change. */
  readonly shows?: RestOperationName;
}

export const API_ROOT = '/api/v1';
const CONFIG = '/pools/{pool}/config';
const SERVER = '/pools/{pool}/servers/{serverId}';
const JOB = '/pools/{pool}/jobs/{job}';
const ROUND = `${JOB}/rounds/{roundId}`;
const PLAN = '/pools/{pool}/rebalance/plans/{planId}';

type Extras = Omit<Route, 'method' | 'path' | 'operation' | 'role'>;
const SHOWS_SERVER: Extras = { shows: 'server.get' };
const SHOWS_POOL: Extras = { shows: 'lb.status' };
const ENDS_SYNC: Extras = { isFenced: true, shows: 'weights.status' };
const reads = (path: string, operation: RestOperationName, extras: Extras = {}): Route => ({
  method: 'GET',
  path,
  operation,
  role: 'viewer',
  ...extras,
});
const changes = (
  role: Role,
  method: HttpMethod,
  path: string,
  operation: RestOperationName,
  extras: Extras = {},
): Route => ({ method, path, operation, role, ...extras });

/**
 * All routes of admin-api: the running routes, docs/protocol/openapi.json and the tests of every route come from this
 * table. A route with a fixed segment comes before a route with a field at the same position.
 */
export const ROUTES: readonly Route[] = [
  reads('/pools', 'pool.list'),
  reads('/pools/{pool}', 'lb.status'),
  changes('admin', 'DELETE', '/pools/{pool}', 'pool.delete', SHOWS_POOL),
  { method: 'GET', path: '/pools/{pool}/audit', operation: 'pool.audit', role: 'operator' },
  { method: 'GET', path: '/pools/{pool}/lost-changes', operation: 'pool.lost-changes', role: 'operator' },
  reads('/pools/{pool}/overview', 'pool.overview'),
  reads('/pools/{pool}/ledger', 'pool.ledger'),
  reads(CONFIG, 'pool.settings', { versionField: 'version' }),
  changes('admin', 'PATCH', CONFIG, 'pool.configure', { versionField: 'ifVersion', shows: 'pool.settings' }),
  reads(`${CONFIG}/history`, 'pool.history'),
  changes('admin', 'POST', `${CONFIG}/rollback`, 'pool.rollback', {
    versionField: 'ifVersion',
    shows: 'pool.settings',
  }),
  reads('/pools/{pool}/readiness', 'service.readiness'),
  changes('admin', 'PUT', '/pools/{pool}/log-level', 'service.log-level', {
    about:
      'Sets the level of the logs of the replicas that serve the pool, or of those that are named, until they restart.',
  }),
  changes('operator', 'POST', '/pools/{pool}/pause', 'pool.pause', SHOWS_POOL),
  changes('operator', 'POST', '/pools/{pool}/resume', 'pool.resume', SHOWS_POOL),

  reads('/pools/{pool}/servers', 'server.list'),
  changes('operator', 'POST', '/pools/{pool}/servers', 'server.register', {
    creates: { path: SERVER },
    ...SHOWS_SERVER,
  }),
  reads(SERVER, 'server.get'),
  reads(`${SERVER}/calls`, 'server.calls'),
  changes('operator', 'PATCH', SERVER, 'server.update', SHOWS_SERVER),
  changes('operator', 'DELETE', SERVER, 'server.remove', SHOWS_SERVER),
  changes('operator', 'POST', `${SERVER}/drain`, 'server.drain', SHOWS_SERVER),
  changes('operator', 'POST', `${SERVER}/undrain`, 'server.uncordon', { id: 'serverUndrain', ...SHOWS_SERVER }),
  changes('operator', 'POST', `${SERVER}/cordon`, 'server.cordon', SHOWS_SERVER),
  changes('operator', 'POST', `${SERVER}/uncordon`, 'server.uncordon', SHOWS_SERVER),
  changes('operator', 'POST', `${SERVER}/fence`, 'server.fence', { isFenced: true, ...SHOWS_SERVER }),
  changes('operator', 'POST', `${SERVER}/quarantine`, 'server.quarantine', SHOWS_SERVER),
  changes('operator', 'POST', `${SERVER}/reconcile`, 'server.reconcile'),

  reads('/pools/{pool}/workers', 'worker.list'),
  changes('operator', 'POST', '/pools/{pool}/workers/{workerId}/deregister', 'worker.deregister', { isFenced: true }),
  reads('/pools/{pool}/leases', 'lb.leases'),
  reads('/pools/{pool}/leases/{leaseId}', 'lb.lease'),
  changes('operator', 'DELETE', '/pools/{pool}/leases/{leaseId}', 'lb.release', {
    about: 'Releases a lease.',
    isFenced: true,
    shows: 'lb.lease',
    values: { outcome: 'aborted' },
  }),
  reads('/pools/{pool}/sessions', 'lb.sessions'),
  changes('operator', 'POST', '/pools/{pool}/sessions/clear', 'lb.clear-sessions'),
  changes('operator', 'DELETE', '/pools/{pool}/sessions/{sessionId}', 'lb.finish-session'),
  reads('/pools/{pool}/decisions', 'lb.decisions'),
  reads('/pools/{pool}/events', 'event.stream', { isStream: true }),
  reads('/pools/{pool}/events/stored', 'event.list'),

  reads('/pools/{pool}/requests', 'request.list'),
  reads('/pools/{pool}/request-totals', 'request.totals'),
  changes('operator', 'POST', '/pools/{pool}/requests/abort', 'request.abort', { idField: 'abortId' }),
  reads('/pools/{pool}/requests/{requestId}', 'request.get'),
  reads('/pools/{pool}/requests/{requestId}/segments', 'request.segments'),

  reads('/pools/{pool}/jobs', 'job.list'),
  reads(JOB, 'job.status'),
  changes('admin', 'DELETE', JOB, 'job.delete', { shows: 'job.status' }),
  reads(`${JOB}/quota`, 'job.configure', {
    id: 'jobQuota',
    about: 'Returns the quota of a job.',
    fields: [],
    versionField: 'version',
  }),
  changes('admin', 'PATCH', `${JOB}/quota`, 'job.configure', {
    fields: ['quota', 'ifVersion'],
    versionField: 'ifVersion',
    shows: 'job.configure',
  }),
  reads(`${JOB}/ledger`, 'job.ledger', { fields: [] }),
  reads(`${JOB}/snapshots`, 'job.snapshots'),
  reads(`${JOB}/rounds`, 'round.list'),
  reads(`${JOB}/past-rounds`, 'round.history'),
  reads(ROUND, 'round.status', { fields: [] }),
  reads(`${ROUND}/groups`, 'group.list'),
  reads(`${ROUND}/ledger`, 'job.ledger', { id: 'roundLedger', about: 'Cost of the tail policy in one round.' }),
  reads(`${ROUND}/explanation`, 'round.explain'),
  reads(`${ROUND}/timeline`, 'round.timeline'),
  reads(`${ROUND}/timeline/export`, 'round.timeline', {
    id: 'timelineExport',
    about: 'All events of the timeline of a round, oldest first, as JSON lines.',
    fields: [],
    isExport: true,
  }),
  reads(`${JOB}/frontier`, 'job.frontier'),
  changes('operator', 'POST', `${ROUND}/cancel`, 'round.cancel', {
    asTrainer: true,
    isFenced: true,
    shows: 'round.status',
  }),
  reads(`${JOB}/longtail`, 'longtail.list'),
  reads(`${JOB}/longtail/export`, 'longtail.list', {
    id: 'longtailExport',
    about: 'The whole queue, oldest first, as JSON lines.',
    fields: [],
    isExport: true,
  }),
  reads(`${JOB}/longtail/stats`, 'longtail.stats', { about: 'Size of the long-tail queue.' }),
  changes('operator', 'POST', `${JOB}/longtail/requeue`, 'longtail.requeue', {
    fields: ['requests'],
    isFenced: true,
    shows: 'longtail.stats',
  }),
  changes('operator', 'POST', `${JOB}/longtail/drop`, 'longtail.drop', { asTrainer: true, shows: 'longtail.stats' }),

  reads('/pools/{pool}/rebalance', 'rebalance.configure', {
    id: 'rebalanceSettings',
    about: 'Returns the settings of the rebalancer.',
    fields: [],
    versionField: 'version',
  }),
  changes('admin', 'PATCH', '/pools/{pool}/rebalance', 'rebalance.configure', {
    versionField: 'ifVersion',
    shows: 'rebalance.configure',
  }),
  changes('operator', 'POST', '/pools/{pool}/rebalance/plans', 'rebalance.plan', {
    idField: 'planId',
    creates: { path: PLAN },
    shows: 'rebalance.status',
  }),
  reads(PLAN, 'rebalance.status'),
  changes('operator', 'POST', `${PLAN}/execute`, 'rebalance.execute', { isFenced: true, shows: 'rebalance.status' }),

  reads('/pools/{pool}/weights', 'weights.status'),
  changes('operator', 'POST', '/pools/{pool}/weights', 'weights.begin', { idField: 'syncId', shows: 'weights.status' }),
  changes('operator', 'POST', '/pools/{pool}/weights/{syncId}/commit', 'weights.commit', ENDS_SYNC),
  changes('operator', 'POST', '/pools/{pool}/weights/{syncId}/rollback', 'weights.rollback', ENDS_SYNC),

  reads('/identity', 'identity.get'),
  { method: 'GET', path: '/tokens', operation: 'token.list', role: 'admin' },
  changes('admin', 'POST', '/tokens', 'token.create', {
    isSecret: true,
    creates: { path: '/tokens/{tokenId}', isAlwaysNew: true },
  }),
  { method: 'GET', path: '/tokens/{tokenId}', operation: 'token.get', role: 'admin' },
  changes('admin', 'DELETE', '/tokens/{tokenId}', 'token.revoke', { isFenced: true }),
  { method: 'GET', path: '/audit-log', operation: 'audit-log.list', role: 'operator' },
];

/** Routes of earlier releases, by method and path, and the routes that do the same now. */
export const RENAMED_ROUTES: Readonly<Record<string, string>> = {
  // The path is one empty id away from the end of a single session.
  'DELETE /pools/{pool}/sessions': 'POST /pools/{pool}/sessions/clear',
};

/** Returns the fields in a path, in order. */
export function fieldsOfPath(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, field]) => field!);
}
