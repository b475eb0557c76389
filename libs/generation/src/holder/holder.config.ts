import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { Matches } from 'class-validator';
import { IsWorkerId, LIMITS, POOL_PATTERN, type WorkerId } from '@broomwagon/contracts';
import { Env, ServiceConfig, withEngines } from '@broomwagon/platform';

// A mixin needs this rest parameter.
// oxlint-disable-next-line typescript/no-explicit-any
type ConfigClass = new (...args: any[]) => ServiceConfig;

/** Adds the settings of a process that holds leases and calls engines. @param app start of the default WORKER_ID */
export function withLeases<Base extends ConfigClass>(base: Base, app: string) {
  class LeasesConfig extends withEngines(base) {
    @Env('POOL', 'pool that this process serves')
    @Matches(POOL_PATTERN, { message: 'must be the name of a pool' })
    pool: string = 'default';

    @Env('WORKER_ID', 'id under which this process holds leases; default: made from host and process')
    @IsWorkerId()
    workerId: WorkerId = defaultWorkerId(app);

    @Env('ACQUIRE_WAIT_MS', 'how long one acquire waits for a server', { min: 0, max: 30_000 })
    acquireWaitMs: number = 20_000;

    @Env('NO_SERVER_DEADLINE_MS', 'time without a server after which a request is returned', { min: 0 })
    noServerDeadlineMs: number = 600_000;

    @Env('KV_WAIT_DEADLINE_MS', 'time that a request of a session waits for KV memory before it ends with an error', {
      min: 0,
    })
    kvWaitDeadlineMs: number = 7_200_000;

    @Env('TRANSITION_DEADLINE_MS', 'how long the end of a request or lease is repeated', { min: 100 })
    transitionDeadlineMs: number = 120_000;

    @Env('UNCLAIMED_AFTER_MS', 'age at which a lease or attempt of this process that it does not hold is returned', {
      min: 0,
    })
    unclaimedAfterMs: number = 10_000;

    @Env(
      'ENGINE_FAILURE_PAUSE_MS',
      'pause before a request is called again that two calls have failed; it doubles with each further failure',
      { min: 0 },
    )
    engineFailurePauseMs: number = 2_000;

    @Env('ENGINE_STALL_TIMEOUT_MS', 'maximum silence of an engine within a stream', { min: 10 })
    engineStallTimeoutMs: number = 120_000;

    @Env('ENGINE_FIRST_TOKEN_TIMEOUT_MS', 'maximum wait for the first token', { min: 10 })
    engineFirstTokenTimeoutMs: number = 1_800_000;

    @Env(
      'ENGINE_MAX_STREAMS',
      'maximum streams of this process to one engine, of single tokens and of several in an event each; more wait',
      { min: 1 },
    )
    engineMaxStreams: number = 4_096;

    @Env(
      'STREAM_INTERVAL',
      'tokens of one event that engines are asked for, unless a client reads the stream or the pool has a setting',
      { min: 1, max: LIMITS.maxTokens },
    )
    streamInterval: number = 64;

    @Env('DRAIN_MS', 'how long requests continue during a shutdown', { min: 0 })
    drainMs: number = 5_000;

    /** Pause between two heartbeats, milliseconds. */
    get heartbeatIntervalMs(): number {
      return this.workerTtlMs / 3;
    }

    override servedPools(): string[] {
      return [this.pool];
    }
  }
  return LeasesConfig;
}

/** The settings of any process that holds leases, as a type and as a token for injection. */
export class HolderConfig extends withLeases(ServiceConfig, 'worker') {}

function defaultWorkerId(app: string): string {
  const host = hostname()
    .replace(/[^A-Za-z0-9_-]/g, '-')
    .slice(0, 40);
  return `${app}-${host}-${process.pid}-${randomBytes(3).toString('hex')}`;
}
