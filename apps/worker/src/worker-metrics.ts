import { Injectable } from '@nestjs/common';
import { Metrics } from '@broomwagon/platform';

/**
 * End of an attempt in this worker. `fenced`: the worker epoch has expired. `gone`: the request does not exist any
 * more. `lost`: the report has failed.
 */
export type AttemptOutcome =
  | 'finished'
  | 'aborted'
  | 'shutdown'
  | 'engine-error'
  | 'engine-abort'
  | 'engine-rejected'
  | 'no-server'
  | 'payload'
  | 'payload-full'
  | 'timeout'
  | 'fenced'
  | 'gone'
  | 'lost';

/** Buckets of generation times, seconds: from milliseconds to hours. */
const GENERATION_BUCKETS_S = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200];

@Injectable()
export class WorkerMetrics {
  readonly attempts = this.metrics.counter(
    'attempts_ended_total',
    'Attempts by outcome; many fenced: heartbeats are late',
    ['outcome'],
  );
  readonly tokens = this.metrics.counter('tokens_generated_total', 'Tokens received from engines');
  readonly running = this.metrics.gauge('attempts_running', 'Attempts that run; at CONCURRENCY: add workers');
  readonly generationSeconds = this.metrics.histogram(
    'engine_request_seconds',
    'Duration of an engine request by result',
    ['result'],
    GENERATION_BUCKETS_S,
  );

  constructor(private readonly metrics: Metrics) {}
}
