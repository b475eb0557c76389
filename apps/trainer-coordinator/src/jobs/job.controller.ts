import { Controller } from '@nestjs/common';
import {
  SnapshotJobRequest,
  ConfigureJobRequest,
  DeleteJobRequest,
  JobLedgerRequest,
  JobStatusRequest,
  ListSnapshotsRequest,
  ListJobsRequest,
  ReconcileJobRequest,
  RestoreJobRequest,
} from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { SnapshotStore, JobStore, RoundStore } from '@broomwagon/state';
import { SnapshotService } from '../snapshots/snapshot.service';
import { LedgerService } from '../ledger/ledger.service';
import { GrantService } from '../grants/grant.service';
import { DeletionService } from './deletion.service';
import { ReconcileService } from './reconcile.service';

const DEFAULT_WEIGHT = 1;

@Controller()
export class JobController {
  constructor(
    private readonly rounds: RoundStore,
    private readonly jobs: JobStore,
    private readonly saved: SnapshotStore,
    private readonly snapshots: SnapshotService,
    private readonly reconciling: ReconcileService,
    private readonly deletions: DeletionService,
    private readonly ledgers: LedgerService,
    private readonly grants: GrantService,
  ) {}

  @Operation('job.status')
  status({ job, stamp }: JobStatusRequest, { pool }: MessageContext) {
    return this.rounds.jobStatus(pool, { job, stamp });
  }

  @Operation('job.list')
  list(body: ListJobsRequest, { pool }: MessageContext) {
    return this.rounds.listJobs(pool, body);
  }

  @Operation('job.configure')
  async configure({ job, quota, ifVersion }: ConfigureJobRequest, { pool }: MessageContext) {
    const changed = quota && { ...quota, weight: quota.weight ?? DEFAULT_WEIGHT };
    const { madeRoom, ...answer } = await this.jobs.configure(pool, { job, ifVersion, ...changed });
    if (madeRoom) this.grants.soon(pool);
    return answer;
  }

  @Operation('job.reconcile')
  reconcile(body: ReconcileJobRequest, { pool }: MessageContext) {
    return this.reconciling.reconcile(pool, body);
  }

  @Operation('job.snapshot')
  snapshot(body: SnapshotJobRequest, { pool }: MessageContext) {
    return this.snapshots.save(pool, body);
  }

  @Operation('job.restore')
  restore(body: RestoreJobRequest, { pool }: MessageContext) {
    return this.snapshots.restore(pool, body);
  }

  @Operation('job.snapshots')
  async listSnapshots({ job, limit = Infinity }: ListSnapshotsRequest, { pool }: MessageContext) {
    const reply = await this.saved.list(pool, { job });
    return { ...reply, snapshots: reply.snapshots.slice(-limit) };
  }

  @Operation('job.ledger')
  ledger({ job, roundId }: JobLedgerRequest, { pool }: MessageContext) {
    return roundId === undefined ? this.ledgers.read(pool, job) : this.ledgers.ofRound(pool, job, roundId);
  }

  @Operation('job.delete')
  delete({ job, force = false }: DeleteJobRequest, { pool }: MessageContext) {
    return this.deletions.deleteJob(pool, job, force);
  }
}
