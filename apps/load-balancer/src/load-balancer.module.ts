import { Module } from '@nestjs/common';
import { EngineAccess } from '@broomwagon/engines';
import { HealthRegistry, Metrics, SchedulerModule, ServiceConfig } from '@broomwagon/platform';
import { PoolDirectory, StateModule } from '@broomwagon/state';
import { AcquireService } from './acquire/acquire.service';
import { LbController } from './acquire/lb.controller';
import { ReleaseService } from './acquire/release.service';
import { TransferService } from './acquire/transfer.service';
import { WaiterAnswersService } from './waiters/waiter-answers.service';
import { LoadBalancerConfig } from './load-balancer.config';
import { LoadBalancerMetrics } from './load-balancer.metrics';
import { PoolController } from './pool/pool.controller';
import { PoolSettingsService } from './pool/pool-settings.service';
import { DiscoveryService } from './servers/discovery.service';
import { EnginePausesService } from './servers/engine-pauses.service';
import { PrefixCachesService } from './servers/prefix-caches.service';
import { EngineSources } from './servers/engine-sources';
import { EngineHealth } from './servers/engine-health';
import { EngineRecordsService } from './servers/engine-records.service';
import { ProbeService } from './servers/probe.service';
import { ServerGauges } from './servers/server-gauges';
import { ServerController } from './servers/server.controller';
import { ServersService } from './servers/servers.service';
import { SessionClosesService } from './servers/session-closes.service';
import { SleepingProbes } from './servers/sleeping-probes';
import { SessionOutlookService } from './upkeep/session-outlook.service';
import { SweepService } from './upkeep/sweep.service';
import { UpkeepService } from './upkeep/upkeep.service';
import { WorkerController } from './workers/worker.controller';

/** The load-balancer: leases, waiters, sessions, and the servers of a pool with their health. */
@Module({
  imports: [
    StateModule.forRootAsync({
      inject: [LoadBalancerConfig, HealthRegistry, Metrics],
      useFactory: (config: LoadBalancerConfig, readiness: HealthRegistry, metrics: Metrics) => ({
        ...config.redisConfig(),
        leases: { maxWaiters: config.maxWaiters },
        readiness,
        metrics,
      }),
    }),
    SchedulerModule.forRootAsync({
      inject: [PoolDirectory, ServiceConfig],
      useFactory: (directory: PoolDirectory, config: ServiceConfig) => ({
        pools: () => directory.served(config.servedPools()),
      }),
    }),
  ],
  controllers: [LbController, PoolController, ServerController, WorkerController],
  providers: [
    AcquireService,
    ReleaseService,
    TransferService,
    WaiterAnswersService,
    PoolSettingsService,
    ServersService,
    SleepingProbes,
    SweepService,
    SessionClosesService,
    SessionOutlookService,
    EngineRecordsService,
    ProbeService,
    ServerGauges,
    EnginePausesService,
    PrefixCachesService,
    {
      provide: EngineAccess,
      useFactory: (config: LoadBalancerConfig) => new EngineAccess(config.engineAllowList),
      inject: [LoadBalancerConfig],
    },
    EngineSources,
    DiscoveryService,
    UpkeepService,
    LoadBalancerMetrics,
    EngineHealth,
  ],
})
export class LoadBalancerModule {}
