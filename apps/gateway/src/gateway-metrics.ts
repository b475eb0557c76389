import { Injectable } from '@nestjs/common';
import { Metrics } from '@broomwagon/platform';

@Injectable()
export class GatewayMetrics {
  readonly requests = this.metrics.counter('gateway_requests_total', 'Requests by route and status', [
    'route',
    'status',
  ]);
  readonly generations = this.metrics.counter(
    'gateway_generations_total',
    'Generations by how they ended: stop, length, abort, or the code of an error',
    ['outcome'],
  );
  readonly running = this.metrics.gauge('gateway_generations_running', 'Generations that run');
  readonly unread = this.metrics.gauge(
    'gateway_generations_unread',
    'Generations whose client has disconnected and may repeat its request',
  );
  readonly controlCalls = this.metrics.counter(
    'gateway_control_calls_total',
    'Calls that steer engines by outcome: done by all engines, refused (4xx), or failed (5xx)',
    ['outcome'],
  );
  readonly turns = this.metrics.counter(
    'gateway_turns_total',
    'Turns of recorded sessions: recorded, or why they are missing in the trajectory',
    ['outcome'],
  );
  readonly tokens = this.metrics.counter('tokens_generated_total', 'Tokens received from engines');
  readonly continued = this.metrics.counter(
    'gateway_continued_total',
    'Calls of engines that ended early and were continued, by cause',
    ['cause'],
  );
  readonly resumesWaiting = this.metrics.gauge(
    'gateway_resumes_waiting',
    'Continued calls that wait until others of their engine have a first token',
  );
  readonly begunAgain = this.metrics.counter(
    'gateway_begun_again_total',
    'Times that responses began again without their tokens: those that are not continued exactly',
  );
  readonly restored = this.metrics.counter(
    'gateway_restored_tokens_total',
    'Tokens that another replica had saved, and from which generations were continued',
  );
  readonly joined = this.metrics.counter(
    'gateway_joined_total',
    'Repeats that joined the generation of their first request, by what identified them: id, idempotency-key, session',
    ['identity'],
  );

  readonly elsewhere = this.metrics.counter(
    'gateway_repeats_elsewhere_total',
    'Repeats of requests that another replica has run, by what identified them, and by outcome: taken over, or refused',
    ['identity', 'outcome'],
  );

  constructor(private readonly metrics: Metrics) {
    this.controlCalls.inc({ outcome: 'failed' }, 0);
  }
}
