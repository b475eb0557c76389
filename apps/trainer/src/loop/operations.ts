import { type OperationName, type PoolName, type ReplyOf, type RequestOf } from '@broomwagon/contracts';
import type { TypedClient } from '@broomwagon/messaging';

type Stamped = {
  [Name in OperationName]: 'stamp' extends keyof RequestOf<Name> ? Name : never;
}[OperationName];

/** Operations that take a stamp: all of them. */
const STAMPED: Record<Stamped, true> = {
  'round.next': true,
  'round.open': true,
  'round.submit': true,
  'round.status': true,
  'round.results': true,
  'round.close': true,
  'round.cancel': true,
  'longtail.drop': true,
  'job.status': true,
  'job.reconcile': true,
  'job.snapshot': true,
  'job.restore': true,
  'weights.begin': true,
  'weights.commit': true,
  'weights.rollback': true,
  'weights.status': true,
};

/**
 * The operations of one pool, repeated until a deadline: every one of them is idempotent. The stamp of each reply goes
 * with the next call, so that Redis cannot lose anything without the trainer being told.
 */
export class Operations {
  private stamp: string | undefined;

  constructor(
    private readonly client: TypedClient,
    readonly pool: PoolName,
    private readonly options: { deadlineMs: number; signal?: AbortSignal },
  ) {}

  /**
   * @throws BroomwagonError the last error, when it is not retryable or the deadline is near; GENERATION_CHANGED from
   *   all calls that pass on a stamp, until {@link acceptGeneration}
   */
  async call<Name extends OperationName>(operation: Name, body: RequestOf<Name>): Promise<ReplyOf<Name>> {
    const { stamp } = this;
    const request = Object.hasOwn(STAMPED, operation) ? { ...body, stamp } : body;
    const reply = await this.client.callWithRetry(this.pool, operation, request, this.options);
    const seen = (reply as { stamp?: unknown } | undefined)?.stamp;
    // Not that of another generation: what was lost is to be reconciled first.
    if (typeof seen === 'string' && generationOf(this.stamp ?? seen) === generationOf(seen)) this.stamp = seen;
    return reply;
  }

  /** For a caller that reconciles: the next reply carries the new generation. */
  acceptGeneration(): void {
    this.stamp = undefined;
  }
}

function generationOf(stamp: string): string {
  return stamp.split('.')[0]!;
}
