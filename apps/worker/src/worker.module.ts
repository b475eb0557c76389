import { Module } from '@nestjs/common';
import { TypedClient } from '@broomwagon/messaging';
import { PayloadModule } from '@broomwagon/state';
import { AttemptAbortController } from './attempts/attempt-abort.controller';
import { AttemptLoader } from './attempts/attempt-loader';
import { AttemptRegistry } from './attempts/attempt-registry';
import { AttemptReporter } from './attempts/attempt-reporter';
import { AttemptRunner } from './attempts/attempt-runner';
import { PartialSaver } from './attempts/partial-saver';
import { HeldLeases } from './attempts/held-leases';
import { LeaseAcquirer } from './attempts/lease-acquirer';
import { LeaseReleaser } from './attempts/lease-releaser';
import { SegmentSaver } from './attempts/segment-saver';
import { ClaimLoop } from './claims/claim-loop';
import { ControlPlane } from './control-plane';
import { EngineAdapters } from './engines/engine-adapters';
import { Heartbeat } from './heartbeat/heartbeat';
import { Reconciler } from './heartbeat/reconciler';
import { WorkerSession } from './session/worker-session';
import { WorkerLifecycle } from './worker-lifecycle';
import { WorkerMetrics } from './worker-metrics';
import { WorkerConfig } from './worker.config';

/** The worker: claims requests and runs them on engines. The platform's providers come from the bootstrap. */
@Module({
  imports: [
    PayloadModule.forRootAsync({
      inject: [WorkerConfig],
      useFactory: (config: WorkerConfig) => config.payloadStoreOptions(),
    }),
  ],
  controllers: [AttemptAbortController],
  providers: [
    {
      provide: ControlPlane,
      inject: [TypedClient, WorkerConfig],
      useFactory: (client: TypedClient, config: WorkerConfig) => new ControlPlane(client, config.pool),
    },
    AttemptLoader,
    AttemptRegistry,
    AttemptReporter,
    AttemptRunner,
    PartialSaver,
    ClaimLoop,
    EngineAdapters,
    Heartbeat,
    HeldLeases,
    LeaseAcquirer,
    LeaseReleaser,
    Reconciler,
    SegmentSaver,
    WorkerLifecycle,
    WorkerMetrics,
    WorkerSession,
  ],
})
export class WorkerModule {}
