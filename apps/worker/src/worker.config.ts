import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { Matches } from 'class-validator';
import { IsId, IsWorkerId, POOL_PATTERN } from '@broomwagon/contracts';
import { Env, PayloadServiceConfig, withEngines } from '@broomwagon/platform';

/** Configuration of one worker process. */
export class WorkerConfig extends withEngines(PayloadServiceConfig) {
  @Env('POOL', 'pool whose requests this worker runs')
  @Matches(POOL_PATTERN, { message: 'must be the name of a pool' })
  pool: string = 'default';

  @Env('WORKER_ID', 'id of this worker; default: made from host and process')
  @IsWorkerId()
  workerId: string = defaultWorkerId();

  @Env('JOB', 'job whose requests this worker runs; default: all jobs', { isOptional: true })
  @IsId()
  job?: string;

  @Env('CONCURRENCY', 'requests run at the same time', { min: 1, max: 65_536 })
  concurrency: number = 256;

  @Env('WORKER_TTL_MS', 'silence after which this worker expires', { min: 500, max: 3_600_000 })
  workerTtlMs: number = 15_000;

  @Env('PARTIAL_SAVE_INTERVAL_MS', 'pause between two partial saves', { min: 10 })
  partialSaveIntervalMs: number = 15_000;

  @Env('CLAIM_WAIT_MS', 'how long a claim waits for requests', { min: 0, max: 30_000 })
  claimWaitMs: number = 20_000;

  @Env('ACQUIRE_WAIT_MS', 'how long one acquire waits for a server', { min: 0, max: 30_000 })
  acquireWaitMs: number = 20_000;

  @Env('NO_SERVER_DEADLINE_MS', 'time without a server after which a request is returned', { min: 0 })
  noServerDeadlineMs: number = 600_000;

  @Env('TRANSITION_DEADLINE_MS', 'how long the worker repeats the end of a request', { min: 100 })
  transitionDeadlineMs: number = 120_000;

  @Env('UNCLAIMED_AFTER_MS', 'age at which a lease or attempt of this worker that it does not know is returned', {
    min: 0,
  })
  unclaimedAfterMs: number = 10_000;

  @Env('ENGINE_FAILURE_PAUSE_MS', 'how long a lease on a failed engine is kept', { min: 0 })
  engineFailurePauseMs: number = 2_000;

  @Env('ENGINE_STALL_TIMEOUT_MS', 'maximum silence of an engine within a stream', { min: 10 })
  engineStallTimeoutMs: number = 120_000;

  @Env('ENGINE_FIRST_TOKEN_TIMEOUT_MS', 'maximum wait for the first token', { min: 10 })
  engineFirstTokenTimeoutMs: number = 1_800_000;

  @Env('ENGINE_MAX_STREAMS', 'maximum streams of this worker to one engine; more wait', { min: 1 })
  engineMaxStreams: number = 4_096;

  @Env('DRAIN_MS', 'how long requests continue during a shutdown', { min: 0 })
  drainMs: number = 5_000;

  override servedPools(): string[] {
    return [this.pool];
  }
}

function defaultWorkerId(): string {
  const host = hostname()
    .replace(/[^A-Za-z0-9_-]/g, '-')
    .slice(0, 40);
  return `worker-${host}-${process.pid}-${randomBytes(3).toString('hex')}`;
}
