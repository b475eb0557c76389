import { Module } from '@nestjs/common';
import { GatheredLeaseCalls, holderProviders, NoAttempts } from '@broomwagon/generation';
import { HealthRegistry, Metrics } from '@broomwagon/platform';
import { PayloadModule, StateModule } from '@broomwagon/state';
import { AboutRoutes } from './about/about-routes';
import { ChatRoutes } from './chat/chat-routes';
import { ControlRoutes } from './control/control-routes';
import { EngineFanOut } from './control/engine-fan-out';
import { WeightChanges } from './control/weight-changes';
import { FleetRoutes } from './fleet/fleet-routes';
import { RllmWorkers } from './fleet/rllm-workers';
import { WorkerRegistry } from './fleet/worker-registry';
import { GatewayConfig } from './gateway.config';
import { GatewayLifecycle } from './gateway-lifecycle';
import { GatewayMetrics } from './gateway-metrics';
import { AbortBroadcast } from './generations/abort-broadcast';
import { GenerationClaims } from './generations/generation-claims';
import { GenerationRegistry } from './generations/generation-registry';
import { GenerationRunner } from './generations/generation-runner';
import { PartialSaves } from './generations/partial-saves';
import { WorkerCommandsController } from './generations/worker-commands.controller';
import { DataPlane } from './http/data-plane';
import { GenerationResponder } from './http/generation-responder';
import { ApiKeys } from './keys/api-keys';
import { PassedRequests } from './passed/passed-requests';
import { PayloadBytes } from './rounds/payload-bytes';
import { ResultsStream } from './rounds/results-stream';
import { MessagesRoutes } from './messages/messages-routes';
import { ResponsesRoutes } from './responses/responses-routes';
import { RoundsRoutes } from './rounds/rounds-routes';
import { SglangControl } from './sglang/sglang-control';
import { SglangGenerate } from './sglang/sglang-generate';
import { RllmRoutes } from './trajectories/rllm-routes';
import { TrajectoryReader } from './trajectories/trajectory-reader';
import { TrajectoryRecorder } from './trajectories/trajectory-recorder';
import { TrajectoryRoutes } from './trajectories/trajectory-routes';
import { TokenizerRoutes } from './tokenizer/tokenizer-routes';
import { SkyRlRoutes } from './vllm/skyrl-routes';
import { VllmRoutes } from './vllm/vllm-routes';

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
    NoAttempts,
    AboutRoutes,
    AbortBroadcast,
    ApiKeys,
    ChatRoutes,
    ControlRoutes,
    DataPlane,
    EngineFanOut,
    FleetRoutes,
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
    MessagesRoutes,
    ResponsesRoutes,
    RllmRoutes,
    RllmWorkers,
    RoundsRoutes,
    SglangControl,
    SglangGenerate,
    TrajectoryReader,
    TrajectoryRecorder,
    TrajectoryRoutes,
    TokenizerRoutes,
    SkyRlRoutes,
    VllmRoutes,
    WeightChanges,
    WorkerRegistry,
  ],
})
export class GatewayModule {}
