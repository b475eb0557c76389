import { Module } from '@nestjs/common';
import { GatheredLeaseCalls, holderProviders, NoAttempts } from '@broomwagon/generation';
import { HealthRegistry, Metrics } from '@broomwagon/platform';
import { PayloadModule, StateModule } from '@broomwagon/state';
import { EngineFanOut } from './control/engine-fan-out';
import { WeightChanges } from './control/weight-changes';
import { WorkerRegistry } from './fleet/worker-registry';
import { GatewayConfig } from './gateway.config';
import { GatewayLifecycle } from './gateway-lifecycle';
import { routeProviders } from './gateway.routes';
import { GatewayMetrics } from './gateway-metrics';
import { AbortBroadcast } from './core/abort-broadcast';
import { GenerationClaims } from './core/generation-claims';
import { GenerationRegistry } from './core/generation-registry';
import { GenerationRunner } from './core/generation-runner';
import { PartialSaves } from './core/partial-saves';
import { WorkerCommandsController } from './core/worker-commands.controller';
import { DataPlane } from './http/data-plane';
import { GenerationResponder } from './answers/generation-responder';
import { SessionSampling } from './answers/session-sampling';
import { ApiKeys } from './keys/api-keys';
import { PassedRequests } from './dialects/passed/passed-requests';
import { PayloadBytes } from './rounds/payload-bytes';
import { ResultsStream } from './rounds/results-stream';
import { TrajectoryReader } from './trajectories/trajectory-reader';
import { TrajectoryRecorder } from './core/recording/trajectory-recorder';

/** The gateway: HTTP dialects of engines in front of a pool. */
@Module({
  imports: [
    StateModule.forRootAsync({
      inject: [GatewayConfig, HealthRegistry, Metrics],
      useFactory: (config: GatewayConfig, readiness: HealthRegistry, metrics: Metrics) => ({
        ...config.redisConfig(),
        readiness,
        metrics,
      }),
    }),
    PayloadModule.forRootAsync({
      inject: [GatewayConfig, HealthRegistry],
      useFactory: (config: GatewayConfig, readiness: HealthRegistry) => ({
        ...config.payloadStoreOptions(),
        readiness,
        isNeeded: false,
      }),
    }),
  ],
  controllers: [WorkerCommandsController],
  providers: [
    ...holderProviders(GatewayConfig, NoAttempts, GatheredLeaseCalls),
    ...routeProviders,
    NoAttempts,
    AbortBroadcast,
    ApiKeys,
    DataPlane,
    EngineFanOut,
    GatewayLifecycle,
    GatewayMetrics,
    GenerationClaims,
    GenerationRegistry,
    GenerationResponder,
    GenerationRunner,
    PartialSaves,
    PassedRequests,
    PayloadBytes,
    ResultsStream,
    SessionSampling,
    TrajectoryReader,
    TrajectoryRecorder,
    WeightChanges,
    WorkerRegistry,
  ],
})
export class GatewayModule {}
