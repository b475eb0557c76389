import { IsId } from '@broomwagon/contracts';
import { withLeases } from '@broomwagon/generation';
import { Env, PayloadServiceConfig } from '@broomwagon/platform';

export class WorkerConfig extends withLeases(PayloadServiceConfig, 'worker') {
  @Env('JOB', 'job whose requests this worker runs; default: all jobs')
  @IsId()
  job?: string;

  @Env('CONCURRENCY', 'requests run at the same time', { min: 1, max: 65_536 })
  concurrency: number = 256;

  @Env('PARTIAL_SAVE_INTERVAL_MS', 'pause between two partial saves', { min: 10 })
  partialSaveIntervalMs: number = 15_000;

  @Env('WAITING_AFTER_MS', 'a request without a new token for so long is reported as waiting in its engine', {
    min: 10,
  })
  waitingAfterMs: number = 3_000;

  @Env('CLAIM_WAIT_MS', 'how long a claim waits for requests', { min: 0, max: 30_000 })
  claimWaitMs: number = 20_000;
}
