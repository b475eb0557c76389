import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { IsInt, IsOptional, Matches, Max, Min } from 'class-validator';
import { IsId, IsWorkerId, POOL_PATTERN } from '@broomwagon/contracts';
import { Env, PayloadServiceConfig, withEngines } from '@broomwagon/platform';

/** Configuration of one worker process. */
export class WorkerConfig extends withEngines(PayloadServiceConfig) {
  @Env('POOL', { description: 'pool whose requests this worker runs' })
  @Matches(POOL_PATTERN, { message: 'must be the name of a pool' })
  pool: string = 'default';

  @Env('WORKER_ID', { description: 'id of this worker; default: made from host and process' })
  @IsWorkerId()
  workerId: string = defaultWorkerId();

  @Env('JOB', { description: 'job whose requests this worker runs; default: all jobs' })
  @IsOptional()
  @IsId()
  job?: string;

  @Env('CONCURRENCY', { description: 'requests run at the same time' })
  @IsInt()
  @Min(1)
  @Max(65_536)
  concurrency: number = 256;

  @Env('WORKER_TTL_MS', { description: 'silence after which this worker expires', kind: 'duration' })
  @IsInt()
  @Min(500)
  @Max(3_600_000)
  workerTtlMs: number = 15_000;

  @Env('CHECKPOINT_INTERVAL_MS', { description: 'pause between two partial saves', kind: 'duration' })
  @IsInt()
  @Min(10)
  checkpointIntervalMs: number = 15_000;

  @Env('CLAIM_WAIT_MS', { description: 'how long a claim waits for requests', kind: 'duration' })
  @IsInt()
  @Min(0)
  @Max(30_000)
  claimWaitMs: number = 20_000;

  @Env('ACQUIRE_WAIT_MS', { description: 'how long one acquire waits for a server', kind: 'duration' })
  @IsInt()
  @Min(0)
  @Max(30_000)
  acquireWaitMs: number = 20_000;

  @Env('NO_SERVER_DEADLINE_MS', {
    description: 'time without a server after which a request is returned',
    kind: 'duration',
  })
  @IsInt()
  @Min(0)
  noServerDeadlineMs: number = 600_000;

  @Env('TRANSITION_DEADLINE_MS', { description: 'how long the worker repeats the end of a request', kind: 'duration' })
  @IsInt()
  @Min(100)
  transitionDeadlineMs: number = 120_000;

  @Env('UNCLAIMED_AFTER_MS', {
    description: 'age at which a lease or attempt of this worker that it does not know is returned',
    kind: 'duration',
  })
  @IsInt()
  @Min(0)
  unclaimedAfterMs: number = 10_000;

  @Env('ENGINE_FAILURE_PAUSE_MS', {
    description: 'how long a lease on a failed engine is kept',
    kind: 'duration',
  })
  @IsInt()
  @Min(0)
  engineFailurePauseMs: number = 2_000;

  @Env('ENGINE_STALL_TIMEOUT_MS', { description: 'maximum silence of an engine within a stream', kind: 'duration' })
  @IsInt()
  @Min(10)
  engineStallTimeoutMs: number = 120_000;

  @Env('ENGINE_FIRST_TOKEN_TIMEOUT_MS', { description: 'maximum wait for the first token', kind: 'duration' })
  @IsInt()
  @Min(10)
  engineFirstTokenTimeoutMs: number = 1_800_000;

  @Env('ENGINE_MAX_STREAMS', { description: 'maximum streams of this worker to one engine; more wait' })
  @IsInt()
  @Min(1)
  engineMaxStreams: number = 4_096;

  @Env('DRAIN_MS', { description: 'how long requests continue during a shutdown', kind: 'duration' })
  @IsInt()
  @Min(0)
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
