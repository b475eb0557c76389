import { Env, PayloadServiceConfig } from '@broomwagon/platform';
import { IsBoolean, IsInt, Max, Min } from 'class-validator';

/** Configuration of the trainer-coordinator. */
export class CoordinatorConfig extends PayloadServiceConfig {
  @Env('SWEEP_INTERVAL_MS', { description: 'pause between two runs of the sweeper', kind: 'duration' })
  @IsInt()
  @Min(10)
  @Max(60_000)
  sweepIntervalMs: number = 100;

  @Env('CUT_REPEAT_MS', { description: 'pause between two repeats of an unconfirmed abort command', kind: 'duration' })
  @IsInt()
  @Min(50)
  @Max(60_000)
  cutRepeatMs: number = 1_000;

  @Env('ABORT_DEADLINE_MS', {
    description:
      'time after which a request that a live worker has not stopped ends and the epoch of its server expires',
    kind: 'duration',
  })
  @IsInt()
  @Min(1_000)
  abortDeadlineMs: number = 60_000;

  @Env('ABORT_KEPT_MS', {
    description: 'how long the answers of aborts, dropped groups, and aborts of unknown requests are kept',
    kind: 'duration',
  })
  @IsInt()
  @Min(1_000)
  @Max(86_400_000)
  abortKeptMs: number = 600_000;

  @Env('MOVE_DEADLINE_MS', {
    description:
      'time after which a move that a live worker has not confirmed is given up; the request stays on its server',
    kind: 'duration',
  })
  @IsInt()
  @Min(1_000)
  moveDeadlineMs: number = 30_000;

  @Env('PLAN_KEPT_MS', {
    description: 'how long a rebalance plan and the states of its moves are kept',
    kind: 'duration',
  })
  @IsInt()
  @Min(1_000)
  @Max(86_400_000)
  planKeptMs: number = 3_600_000;

  @Env('REBALANCE_CHECK_MS', {
    description: 'pause between two checks for a reason to rebalance, in pools that rebalance',
    kind: 'duration',
  })
  @IsInt()
  @Min(100)
  @Max(60_000)
  rebalanceCheckMs: number = 1_000;

  @Env('JOB_IDLE_MS', {
    description: 'silence of a trainer after which its job is deleted if it has no open round; 0: never',
    kind: 'duration',
  })
  @IsInt()
  @Min(0)
  jobIdleMs: number = 2_592_000_000;

  @Env('POOL_IDLE_MS', {
    description: 'time after which a pool without jobs, servers and workers is deleted; 0: never',
    kind: 'duration',
  })
  @IsInt()
  @Min(0)
  poolIdleMs: number = 2_592_000_000;

  @Env('ORPHAN_AFTER_MS', {
    description: 'silence of a trainer after which claims of its round stop, unless the round sets another time',
    kind: 'duration',
  })
  @IsInt()
  @Min(1_000)
  orphanAfterMs: number = 600_000;

  @Env('PAYLOAD_RESERVE_BYTES_PER_TOKEN', {
    description:
      'bytes of the quota reserved for each token of maxTokens of a live sample; 2: a fifth of maxTokens at 10 bytes',
  })
  @IsInt()
  @Min(0)
  @Max(1_000)
  payloadReserveBytesPerToken: number = 2;

  @Env('CLAIM_ANSWER_KEPT_MS', {
    description: 'how long the answer of a claim is kept for its repeat',
    kind: 'duration',
  })
  @IsInt()
  @Min(1)
  @Max(3_600_000)
  claimAnswerKeptMs: number = 60_000;

  @Env('MAX_CLAIM_WAITERS', { description: 'maximum waiting claims of a pool; more are answered QUEUE_FULL' })
  @IsInt()
  @Min(0)
  maxClaimWaiters: number = 100_000;

  @Env('REDIS_LOSS_WINDOW_MS', {
    description:
      'maximum time that Redis may lose by a crash or failover; payloads are kept this long after their last use',
    kind: 'duration',
  })
  @IsInt()
  @Min(1_000)
  redisLossWindowMs: number = 10_000;

  @Env('PAYLOAD_DELETE_AFTER_MS', {
    description: 'time after which an unused payload is removed',
    kind: 'duration',
  })
  @IsInt()
  @Min(1_000)
  payloadDeleteAfterMs: number = 300_000;

  @Env('PAYLOAD_AWAITING_MAX_BYTES', {
    description:
      'maximum bytes of unused payloads of a pool; above it the oldest are removed after REDIS_LOSS_WINDOW_MS',
  })
  @IsInt()
  @Min(0)
  payloadAwaitingMaxBytes: number = 1_073_741_824;

  @Env('PAYLOAD_SWEEP_UNCHECKED', {
    description:
      'remove payloads without an owner despite the alarms payload-sweep-*; the store then belongs to this deployment',
  })
  @IsBoolean()
  payloadSweepUnchecked: boolean = false;

  @Env('EVENTS_RELAY', { description: 'publish the events of the outbox' })
  @IsBoolean()
  eventsRelay: boolean = true;

  @Env('EVENTS_STREAM_MAX_BYTES', {
    description: 'maximum bytes of the JetStream stream of events, if the server has JetStream',
  })
  @IsInt()
  @Min(1_048_576)
  eventsStreamMaxBytes: number = 268_435_456;

  @Env('EVENTS_STREAM_MAX_AGE_MS', { description: 'maximum age of events in the stream', kind: 'duration' })
  @IsInt()
  @Min(60_000)
  eventsStreamMaxAgeMs: number = 86_400_000;
}
