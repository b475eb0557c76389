import { Injectable } from '@nestjs/common';
import { Metrics } from '@broomwagon/platform';

@Injectable()
export class HolderMetrics {
  readonly fences = this.metrics.counter(
    'worker_fences_total',
    'Times that the epoch of this worker expired and it registered again',
  );
  readonly unclaimed = this.metrics.counter(
    'unclaimed_returned_total',
    'Leases and attempts of this worker that it did not know, returned by kind',
    ['kind'],
  );
  readonly uncheckedTexts = this.metrics.counter(
    'texts_unchecked_total',
    'Calls at whose beginning or end text may be missing, since the engine does not decode token ids',
  );
  readonly unsentTokens = this.metrics.counter(
    'tokens_unsent_total',
    'Tokens that engines have generated and not sent before a call was stopped or failed; they are generated again',
    ['cause'],
  );
  readonly fineStreams = this.metrics.counter(
    'stream_intervals_ignored_total',
    'Calls whose engine sent far more events than it was asked for',
  );

  readonly firstTokenSeconds = this.metrics.histogram(
    'first_token_seconds',
    'Time from the call of an engine to its first token: queue of the engine, and prefill',
  );

  constructor(private readonly metrics: Metrics) {}
}
