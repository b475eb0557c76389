import { Module } from '@nestjs/common';
import { HealthRegistry, Metrics, SchedulerModule, ServiceConfig } from '@broomwagon/platform';
import { DeletionStore, PayloadModule, PoolDirectory, StateModule } from '@broomwagon/state';
import { AbortService } from './aborts/abort.service';
import { SnapshotService } from './snapshots/snapshot.service';
import { CoordinatorConfig } from './coordinator.config';
import { CoordinatorMetrics } from './coordinator.metrics';
import { EventRelayService } from './events/event-relay.service';
import { ForeignStreamsService } from './events/foreign-streams.service';
import { DeletionService } from './jobs/deletion.service';
import { JobController } from './jobs/job.controller';
import { PoolController } from './jobs/pool.controller';
import { LedgerMetrics } from './ledger/ledger.metrics';
import { LedgerService } from './ledger/ledger.service';
import { LongtailController } from './longtail/longtail.controller';
import { RequeueService } from './longtail/requeue.service';
import { PayloadRoomService } from './payload/payload-room.service';
import { PayloadController } from './payload/payload.controller';
import { OrphanSweepService } from './payload/orphan-sweep.service';
import { TrajectoryExpiryService } from './payload/trajectory-expiry.service';
import { PayloadRemovalService } from './payload/payload-removal.service';
import { MoveSenderService } from './rebalance/move-sender.service';
import { RebalanceController } from './rebalance/rebalance.controller';
import { RebalanceWatchService } from './rebalance/rebalance-watch.service';
import { RebalanceService } from './rebalance/rebalance.service';
import { PromptController } from './prompts/prompt.controller';
import { GrantService } from './grants/grant.service';
import { ExpiredAttempts } from './requests/expired-attempts';
import { RequestController } from './requests/request.controller';
import { CompletionService } from './requests/completion.service';
import { RequestService } from './requests/request.service';
import { ResultsService } from './rounds/results.service';
import { RewardService } from './rounds/reward.service';
import { RoundController } from './rounds/round.controller';
import { PolicyResolver } from './rounds/policy-resolver';
import { RoundService } from './rounds/round.service';
import { OpenRounds } from './rounds/open-rounds';
import { RoundMetrics } from './rounds/round.metrics';
import { RoundReports } from './rounds/round-reports';
import { RoundTraces } from './rounds/round-traces';
import { RoundSweeps } from './rounds/round-sweeps';
import { ContextLengthService } from './rounds/context-length.service';
import { SubmissionService } from './rounds/submission.service';
import { ServerFences } from './commands/server-fences';
import { ReconcileService } from './jobs/reconcile.service';
import { AuditService } from './upkeep/audit.service';
import { JobTotals } from './upkeep/job-totals';
import { WaitingReaders } from './rounds/waiting-readers';
import { SweepService } from './upkeep/sweep.service';
import { UpkeepService } from './upkeep/upkeep.service';
import { WorkerCommands } from './commands/worker-commands';
import { WeightSyncService } from './weights/weight-sync.service';
import { WeightsController } from './weights/weights.controller';

/** The coordinator: rounds, requests, the long-tail queue and payloads of the jobs of a pool. */
@Module({
  imports: [
    StateModule.forRootAsync({
      inject: [CoordinatorConfig, HealthRegistry, Metrics],
      useFactory: (config: CoordinatorConfig, readiness: HealthRegistry, metrics: Metrics) => ({
        ...config.redisConfig(),
        claims: { keptMs: config.claimAnswerKeptMs, maxWaiters: config.maxClaimWaiters },
        readiness,
        metrics,
      }),
    }),
    PayloadModule.forRootAsync({
      inject: [CoordinatorConfig, HealthRegistry],
      useFactory: (config: CoordinatorConfig, readiness: HealthRegistry) => ({
        ...config.payloadStoreOptions(),
        readiness,
      }),
    }),
    SchedulerModule.forRootAsync({
      inject: [PoolDirectory, ServiceConfig],
      useFactory: (directory: PoolDirectory, config: ServiceConfig) => ({
        pools: () => directory.served(config.servedPools()),
      }),
    }),
  ],
  controllers: [
    RoundController,
    RequestController,
    LongtailController,
    JobController,
    PoolController,
    PayloadController,
    PromptController,
    WeightsController,
    RebalanceController,
  ],
  providers: [
    AbortService,
    AuditService,
    SnapshotService,
    CoordinatorMetrics,
    DeletionService,
    DeletionStore,
    OrphanSweepService,
    TrajectoryExpiryService,
    PayloadRemovalService,
    JobTotals,
    EventRelayService,
    RoundReports,
    RoundTraces,
    RoundMetrics,
    OpenRounds,
    ExpiredAttempts,
    ForeignStreamsService,
    GrantService,
    LedgerMetrics,
    LedgerService,
    MoveSenderService,
    PayloadRoomService,
    RebalanceService,
    RebalanceWatchService,
    CompletionService,
    RequestService,
    RequeueService,
    ResultsService,
    RewardService,
    PolicyResolver,
    RoundService,
    RoundSweeps,
    ServerFences,
    ContextLengthService,
    SubmissionService,
    ReconcileService,
    SweepService,
    UpkeepService,
    WaitingReaders,
    WeightSyncService,
    WorkerCommands,
  ],
})
export class CoordinatorModule {}
