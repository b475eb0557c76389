import { Module } from '@nestjs/common';
import { HealthRegistry, Metrics, ServiceConfig } from '@broomwagon/platform';
import {
  InspectionStore,
  PoolStore,
  RedisModule,
  ROUTING_BOUNDS,
  RoutingStore,
  FunctionRunner,
  ServerStore,
  storesOfTransitions,
  WeightStore,
} from '@broomwagon/state';
import { LoadBalancerConfig } from './load-balancer.config';

const redis = RedisModule.forService(ServiceConfig, HealthRegistry, Metrics);

/** The stores of the load-balancer. */
@Module({
  imports: [redis],
  providers: [
    ...storesOfTransitions(InspectionStore, PoolStore, WeightStore),
    {
      provide: RoutingStore,
      inject: [FunctionRunner, LoadBalancerConfig],
      useFactory: (scripts: FunctionRunner, config: LoadBalancerConfig) =>
        new RoutingStore(scripts, {
          ...ROUTING_BOUNDS,
          mostSessions: config.maxSessions,
          mostWaiters: config.maxWaiters,
        }),
    },
    {
      provide: ServerStore,
      inject: [FunctionRunner, LoadBalancerConfig],
      useFactory: (scripts: FunctionRunner, config: LoadBalancerConfig) =>
        new ServerStore(scripts, { mostSessions: config.maxSessions }),
    },
  ],
  exports: [redis, InspectionStore, RoutingStore, ServerStore, PoolStore, WeightStore],
})
export class StateModule {}
