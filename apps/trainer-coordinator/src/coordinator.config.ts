import { Env, MAX_AGE_MS, PayloadServiceConfig } from '@broomwagon/platform';

export class CoordinatorConfig extends PayloadServiceConfig {
  @Env('SWEEP_INTERVAL_MS', 'pause between two runs of the sweeper', { min: 10, max: 60_000 })
  sweepIntervalMs: number = 100;

  @Env('CUT_REPEAT_MS', 'pause between two repeats of an unconfirmed abort command', { min: 50, max: 60_000 })
  cutRepeatMs: number = 1_000;

  @Env(
    'ABORT_DEADLINE_MS',
    'time after which a request that a live worker has not stopped ends and the epoch of its server expires',
    { min: 1_000 },
  )
  abortDeadlineMs: number = 60_000;

  @Env('ABORT_KEPT_MS', 'how long the answers of aborts, dropped groups, and aborts of unknown requests are kept', {
    min: 1_000,
    max: 86_400_000,
  })
  abortKeptMs: number = 600_000;

  @Env(
    'MOVE_DEADLINE_MS',
    'time after which a move that a live worker has not confirmed is given up; the request stays on its server',
    { min: 1_000 },
  )
  moveDeadlineMs: number = 30_000;

  @Env('TRAJECTORY_KEPT_MS', 'time without a turn after which the trajectory of a session is removed', { min: 1_000 })
  trajectoryKeptMs: number = 86_400_000;

  @Env('PLAN_KEPT_MS', 'how long a rebalance plan and the states of its moves are kept', {
    min: 1_000,
    max: 86_400_000,
  })
  planKeptMs: number = 3_600_000;

  @Env('REBALANCE_CHECK_MS', 'pause between two checks for a reason to rebalance, in pools that rebalance', {
    min: 100,
    max: 60_000,
  })
  rebalanceCheckMs: number = 1_000;

  @Env('JOB_IDLE_MS', 'silence of a trainer after which its job is deleted if it has no open round; 0: never', {
    min: 0,
    max: MAX_AGE_MS,
  })
  jobIdleMs: number = 2_592_000_000;

  @Env('POOL_IDLE_MS', 'time after which a pool without jobs, servers and workers is deleted; 0: never', {
    min: 0,
    max: MAX_AGE_MS,
  })
  poolIdleMs: number = 2_592_000_000;

  @Env(
    'ORPHAN_AFTER_MS',
    'silence of a trainer after which claims of its round stop, unless the round sets another time',
    { min: 1_000 },
  )
  orphanAfterMs: number = 600_000;

  @Env(
    'PAYLOAD_RESERVE_BYTES_PER_TOKEN',
    'bytes of the quota reserved for each token of maxTokens of a live sample; 2: a fifth of maxTokens at 10 bytes',
    { min: 0, max: 1_000 },
  )
  payloadReserveBytesPerToken: number = 2;

  @Env(
    'REQUEST_FAILURE_DEADLINE_MS',
    'time after which a request fails for good that the same engines fail again and again, without a further token',
    { min: 0 },
  )
  requestFailureDeadlineMs: number = 300_000;

  @Env('CLAIM_ANSWER_KEPT_MS', 'how long the answer of a claim is kept for its repeat', { min: 1, max: 3_600_000 })
  claimAnswerKeptMs: number = 60_000;

  @Env('MAX_CLAIM_WAITERS', 'maximum waiting claims of a pool; more are answered QUEUE_FULL', { min: 0 })
  maxClaimWaiters: number = 100_000;

  @Env(
    'REDIS_LOSS_WINDOW_MS',
    'maximum time that Redis may lose by a crash or failover; payloads are kept this long after their last use',
    { min: 1_000 },
  )
  redisLossWindowMs: number = 10_000;

  @Env('PAYLOAD_DELETE_AFTER_MS', 'time after which an unused payload is removed', { min: 1_000 })
  payloadDeleteAfterMs: number = 300_000;

  @Env(
    'PAYLOAD_AWAITING_MAX_BYTES',
    'maximum bytes of unused payloads of a pool; above it the oldest are removed after REDIS_LOSS_WINDOW_MS',
    { min: 0 },
  )
  payloadAwaitingMaxBytes: number = 1_073_741_824;

  @Env(
    'PAYLOAD_SWEEP_UNCHECKED',
    'remove payloads without an owner despite the alarms payload-sweep-*; the store then belongs to this deployment',
  )
  payloadSweepUnchecked: boolean = false;

  @Env('METRICS_JOBS', 'jobs of a pool whose ledgers have metrics of their own: those that changed last', { min: 0 })
  metricsJobs: number = 20;

  @Env('EVENTS_RELAY', 'publish the events of the outbox')
  eventsRelay: boolean = true;

  @Env('EVENTS_STREAM_MAX_BYTES', 'maximum bytes of the JetStream stream of events, if the server has JetStream', {
    min: 1_048_576,
  })
  eventsStreamMaxBytes: number = 268_435_456;

  @Env('EVENTS_STREAM_MAX_AGE_MS', 'maximum age of events in the stream', { min: 60_000, max: MAX_AGE_MS })
  eventsStreamMaxAgeMs: number = 86_400_000;
}
