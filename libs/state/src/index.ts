export * from './audit';
export { connectRedis } from './redis';
export type { RedisClient } from './redis-cluster';
export { checkRedisAccess } from './redis-access';
export * from './redis-memory';
export { FunctionRunner, type PassedArgs, type Transition } from './library/function-runner';
export * from './library/lists';
export * from './payload';
export * from './removals/removal.store';
export * from './leases';
export * from './servers/server.store';
export * from './sessions/session.store';
export * from './trajectories/trajectory.store';
export * from './waiters/waiter.store';
export * from './workers/worker.store';
export * from './pools';
export {
  type AttemptFence,
  type CompleteAnswer,
  type CompleteItemArgs,
  RequestStore,
  type SaveManyArgs,
  type SegmentArgs,
} from './requests/request.store';
export * from './rounds';
export * from './aborts/abort.store';
export * from './weights/weight.store';
export * from './longtail/longtail.store';
export * from './inspection/inspection.store';
export * from './jobs';
export * from './snapshots/snapshot.store';
export * from './credentials/credential.store';
export * from './partials/partial.store';
export * from './partials/partial-owner.store';
export { TokenCache } from './credentials/token-cache';
export * from './replies/reply.store';
export * from './moves/move.store';
export * from './ledger';
export { StateModule, type StateOptions } from './state.module';
