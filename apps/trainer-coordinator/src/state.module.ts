import { Module } from '@nestjs/common';
import { HealthRegistry, Metrics, ServiceConfig } from '@broomwagon/platform';
import {
  AbortStore,
  CheckpointStore,
  RemovalStore,
  FactOutbox,
  InspectionStore,
  JobStore,
  LedgerStore,
  LongtailStore,
  MoveStore,
  PoolAudit,
  PromptMemoryStore,
  REDIS_CONNECTION,
  RedisModule,
  RequestStore,
  RoundStore,
  RoutingStore,
  FunctionRunner,
  storesOfTransitions,
  WeightStore,
  type RedisConnection,
} from '@broomwagon/state';
import { CoordinatorConfig } from './coordinator.config';

const redis = RedisModule.forService(ServiceConfig, HealthRegistry, Metrics);
const stores = [
  ...storesOfTransitions(
    AbortStore,
    CheckpointStore,
    RemovalStore,
    InspectionStore,
    JobStore,
    LedgerStore,
    LongtailStore,
    MoveStore,
    PromptMemoryStore,
    RoundStore,
    RoutingStore,
    WeightStore,
  ),
  {
    provide: RequestStore,
    inject: [FunctionRunner, CoordinatorConfig],
    useFactory: (scripts: FunctionRunner, config: CoordinatorConfig) =>
      new RequestStore(scripts, { answerKeptMs: config.claimAnswerKeptMs, maxWaiters: config.maxClaimWaiters }),
  },
  {
    provide: PoolAudit,
    inject: [REDIS_CONNECTION, FunctionRunner],
    useFactory: (connection: RedisConnection, scripts: FunctionRunner) => new PoolAudit(connection, scripts),
  },
  {
    provide: FactOutbox,
    inject: [REDIS_CONNECTION, CoordinatorConfig],
    useFactory: (connection: RedisConnection, config: CoordinatorConfig) =>
      new FactOutbox(connection, config.redisKeyPrefix, `relay-${process.pid}-${Date.now()}`),
  },
];

/** The stores of the coordinator. */
@Module({
  imports: [redis],
  providers: stores,
  exports: [redis, ...stores.map(({ provide }) => provide)],
})
export class StateModule {}
