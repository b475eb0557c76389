import { Module } from '@nestjs/common';
import { GatheredLeaseCalls, holderProviders } from '@broomwagon/generation';
import { HealthRegistry } from '@broomwagon/platform';
import { PayloadModule } from '@broomwagon/state';
import { AttemptAbortController } from './attempts/attempt-abort.controller';
import { AttemptLoader } from './attempts/attempt-loader';
import { AttemptRegistry } from './attempts/attempt-registry';
import { CompleteCalls } from './attempts/complete-calls';
import { AttemptReporter } from './attempts/attempt-reporter';
import { AttemptRunner } from './attempts/attempt-runner';
import { PartialSaver } from './attempts/partial-saver';
import { PayloadGate } from './attempts/payload-gate';
import { SegmentSaver } from './attempts/segment-saver';
import { ClaimLoop } from './claims/claim-loop';
import { WorkerLifecycle } from './worker-lifecycle';
import { WorkerMetrics } from './worker-metrics';
import { WorkerConfig } from './worker.config';

/** The worker, which claims requests and runs them on engines. The bootstrap adds the providers of the platform. */
@Module({
  imports: [
    PayloadModule.forRootAsync({
      inject: [WorkerConfig, HealthRegistry],
      useFactory: (config: WorkerConfig, readiness: HealthRegistry) => ({
        ...config.payloadStoreOptions(),
        readiness,
      }),
    }),
  ],
  controllers: [AttemptAbortController],
  providers: [
    ...holderProviders(WorkerConfig, AttemptRegistry, GatheredLeaseCalls),
    AttemptLoader,
    AttemptRegistry,
    AttemptReporter,
    CompleteCalls,
    AttemptRunner,
    PartialSaver,
    PayloadGate,
    ClaimLoop,
    SegmentSaver,
    WorkerLifecycle,
    WorkerMetrics,
  ],
})
export class WorkerModule {}
