import { Injectable } from '@nestjs/common';
import { isBroomwagonError, type JobId, type PoolName, type RoundId } from '@broomwagon/contracts';
import { activeTraceparent, inSpan, toSpanAttributes, tracing } from '@broomwagon/messaging';
import { RoundStore } from '@broomwagon/state';

/** Runs calls about a round in the trace of the round, though their callers have no trace. */
@Injectable()
export class RoundTraces {
  constructor(private readonly rounds: RoundStore) {}

  /** Runs work as a span of the trace of the round, unless the caller has a trace. Costs nothing without traces. */
  async run<T>(
    operation: string,
    pool: PoolName,
    { job, roundId }: { job: JobId; roundId: RoundId },
    work: () => Promise<T>,
  ): Promise<T> {
    if (!tracing.isOn || activeTraceparent() !== undefined) return work();
    const traceparent = await this.find(pool, job, roundId);
    if (traceparent === undefined) return work();
    const attributes = toSpanAttributes({ pool, job, roundId });
    return inSpan({ traceparent, name: `process ${operation}`, kind: 'server', attributes }, work);
  }

  private async find(pool: PoolName, job: JobId, roundId: RoundId): Promise<string | undefined> {
    try {
      return (await this.rounds.status(pool, { job, roundId })).traceparent;
    } catch (error) {
      // The call itself reports what is wrong with its round.
      if (isBroomwagonError(error)) return undefined;
      throw error;
    }
  }
}
