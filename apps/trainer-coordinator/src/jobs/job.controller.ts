import { Controller } from '@nestjs/common';
import {
  CheckpointJobRequest,
  ConfigureJobRequest,
  DeleteJobRequest,
  JobLedgerRequest,
  JobStatusRequest,
  ListCheckpointsRequest,
  ListJobsRequest,
  ReconcileJobRequest,
  RestoreJobRequest,
} from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { CheckpointStore, JobStore, RoundStore } from '@broomwagon/state';
import { CheckpointService } from '../checkpoints/checkpoint.service';
import { LedgerService } from '../ledger/ledger.service';
import { GrantService } from '../requests/grant.service';
import { DeletionService } from './deletion.service';
import { ReconcileService } from './reconcile.service';

const DEFAULT_WEIGHT = 1;

/** The operations `job.*`. */
@Controller()
export class JobController {
  constructor(
    private readonly rounds: RoundStore,
    private readonly jobs: JobStore,
    private readonly saved: CheckpointStore,
    private readonly checkpoints: CheckpointService,
    private readonly reconciling: ReconcileService,
    private readonly deletions: DeletionService,
    private readonly ledgers: LedgerService,
    private readonly grants: GrantService,
  ) {}

  @Operation('job.status')
  status({ job, stamp }: JobStatusRequest, { pool }: MessageContext) {
    return this.rounds.jobStatus(pool, job, stamp);
  }

  @Operation('job.list')
  list({ openOnly = false, cursor }: ListJobsRequest, { pool }: MessageContext) {
    return this.rounds.jobPage(pool, openOnly, cursor);
  }

  @Operation('job.configure')
  async configure({ job, quota }: ConfigureJobRequest, { pool }: MessageContext) {
    const request = quota && { ...quota, weight: quota.weight ?? DEFAULT_WEIGHT };
    const { madeRoom, ...answer } = await this.jobs.configure(pool, job, request);
    if (madeRoom) this.grants.soon(pool);
    return answer;
  }

  @Operation('job.reconcile')
  reconcile(body: ReconcileJobRequest, { pool }: MessageContext) {
    return this.reconciling.reconcile(pool, body);
  }

  @Operation('job.checkpoint')
  checkpoint(body: CheckpointJobRequest, { pool }: MessageContext) {
    return this.checkpoints.save(pool, body);
  }

  @Operation('job.restore')
  restore(body: RestoreJobRequest, { pool }: MessageContext) {
    return this.checkpoints.restore(pool, body);
  }

  @Operation('job.checkpoints')
  listCheckpoints({ job }: ListCheckpointsRequest, { pool }: MessageContext) {
    return this.saved.list(pool, job);
  }

  @Operation('job.ledger')
  ledger({ job, roundId }: JobLedgerRequest, { pool }: MessageContext) {
    return this.ledgers.read(pool, job, roundId);
  }

  @Operation('job.delete')
  delete({ job, force = false }: DeleteJobRequest, { pool }: MessageContext) {
    return this.deletions.deleteJob(pool, job, force);
  }
}
