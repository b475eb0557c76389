import { Env, PayloadServiceConfig } from '@broomwagon/platform';
import { IsBoolean, IsInt, Max, Min } from 'class-validator';

/** Configuration of the trainer-coordinator. */
export class CoordinatorConfig extends PayloadServiceConfig {
  @Env('SWEEP_INTERVAL_MS', { description: 'pause between two looks at what is to be swept', kind: 'duration' })
  @IsInt()
  @Min(10)
  @Max(60_000)
  sweepIntervalMs: number = 100;

  @Env('CUT_REPEAT_MS', { description: 'aborts that are not confirmed are sent again after this', kind: 'duration' })
  @IsInt()
  @Min(50)
  @Max(60_000)
  cutRepeatMs: number = 1_000;

  @Env('ABORT_DEADLINE_MS', {
    description: 'what a worker that lives has not ended after this is void with the epoch of its server',
    kind: 'duration',
  })
  @IsInt()
  @Min(1_000)
  abortDeadlineMs: number = 60_000;

  @Env('ABORT_KEPT_MS', {
    description: 'life of the answer of an abort, of dropped groups, and of aborts that came before their request',
    kind: 'duration',
  })
  @IsInt()
  @Min(1_000)
  @Max(86_400_000)
  abortKeptMs: number = 600_000;

  @Env('MOVE_DEADLINE_MS', {
    description:
      'a move whose worker lives but does not confirm is given up after this; the request goes on where it is',
    kind: 'duration',
  })
  @IsInt()
  @Min(1_000)
  moveDeadlineMs: number = 30_000;

  @Env('PLAN_KEPT_MS', { description: 'life of a rebalance plan and of the states of its moves', kind: 'duration' })
  @IsInt()
  @Min(1_000)
  @Max(86_400_000)
  planKeptMs: number = 3_600_000;

  @Env('REBALANCE_CHECK_MS', {
    description: 'pause between two looks at what could be a reason to rebalance, where that is switched on',
    kind: 'duration',
  })
  @IsInt()
  @Min(100)
  @Max(60_000)
  rebalanceCheckMs: number = 1_000;

  @Env('JOB_IDLE_MS', {
    description: 'a job whose trainer was not heard of for this long, without an open round, is deleted; 0: never',
    kind: 'duration',
  })
  @IsInt()
  @Min(0)
  jobIdleMs: number = 2_592_000_000;

  @Env('POOL_IDLE_MS', {
    description: 'a pool without jobs, servers and workers is deleted after this; 0: never',
    kind: 'duration',
  })
  @IsInt()
  @Min(0)
  poolIdleMs: number = 2_592_000_000;

  @Env('ORPHAN_AFTER_MS', {
    description: 'claims stop when a trainer is silent for this long and its round names nothing else',
    kind: 'duration',
  })
  @IsInt()
  @Min(1_000)
  orphanAfterMs: number = 600_000;

  @Env('PAYLOAD_RESERVE_BYTES_PER_TOKEN', {
    description:
      'bytes of the quota reserved for each token of maxTokens of a live sample; 2: samples take a fifth of maxTokens at 10 bytes',
  })
  @IsInt()
  @Min(0)
  @Max(1_000)
  payloadReserveBytesPerToken: number = 2;

  @Env('CLAIM_ANSWER_KEPT_MS', { description: 'how long a repeated claim gets its first answer', kind: 'duration' })
  @IsInt()
  @Min(1)
  @Max(3_600_000)
  claimAnswerKeptMs: number = 60_000;

  @Env('MAX_CLAIM_WAITERS', { description: 'claims that may wait in a pool; more are answered QUEUE_FULL' })
  @IsInt()
  @Min(0)
  maxClaimWaiters: number = 100_000;

  @Env('REDIS_LOSS_WINDOW_MS', {
    description:
      'what Redis may lose at most, by a crash or a failover; no payload is removed sooner after its last use',
    kind: 'duration',
  })
  @IsInt()
  @Min(1_000)
  redisLossWindowMs: number = 10_000;

  @Env('PAYLOAD_DELETE_AFTER_MS', {
    description: 'payloads that nothing names any more are removed after this',
    kind: 'duration',
  })
  @IsInt()
  @Min(1_000)
  payloadDeleteAfterMs: number = 300_000;

  @Env('PAYLOAD_AWAITING_MAX_BYTES', {
    description:
      'payloads of a pool that wait for their removal; above it the oldest wait for REDIS_LOSS_WINDOW_MS only',
  })
  @IsInt()
  @Min(0)
  payloadAwaitingMaxBytes: number = 1_073_741_824;

  @Env('PAYLOAD_SWEEP_UNCHECKED', {
    description:
      'sweep payloads without an owner in spite of the alarms payload-sweep-*, and make the store that of this deployment',
  })
  @IsBoolean()
  payloadSweepUnchecked: boolean = false;

  @Env('EVENTS_RELAY', { description: 'publish events from the outbox' })
  @IsBoolean()
  eventsRelay: boolean = true;

  @Env('EVENTS_STREAM_MAX_BYTES', {
    description: 'bound of the JetStream stream of events, when the server has JetStream',
  })
  @IsInt()
  @Min(1_048_576)
  eventsStreamMaxBytes: number = 268_435_456;

  @Env('EVENTS_STREAM_MAX_AGE_MS', { description: 'events older than this leave the stream', kind: 'duration' })
  @IsInt()
  @Min(60_000)
  eventsStreamMaxAgeMs: number = 86_400_000;
}
