import {
  isBroomwagonError,
  type OperationName,
  type PoolName,
  type ReplyOf,
  type RequestOf,
} from '@broomwagon/contracts';
import type { TypedClient } from '@broomwagon/messaging';

/** Operations that take a stamp. */
const STAMPED: ReadonlySet<OperationName> = new Set([
  'round.next',
  'round.open',
  'round.submit',
  'round.status',
  'round.results',
  'round.close',
]);

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
   * @throws BroomwagonError the last error, when it is not retryable or the deadline is near; GENERATION_CHANGED once,
   *   and later calls go on in the new generation
   */
  async call<Name extends OperationName>(operation: Name, body: RequestOf<Name>): Promise<ReplyOf<Name>> {
    const { stamp } = this;
    const request = STAMPED.has(operation) ? { ...body, stamp } : body;
    try {
      const reply = await this.client.callWithRetry(this.pool, operation, request, this.options);
      const seen = (reply as { stamp?: unknown } | undefined)?.stamp;
      if (typeof seen === 'string') this.stamp = seen;
      return reply;
    } catch (error) {
      if (isBroomwagonError(error, 'GENERATION_CHANGED')) this.stamp = undefined;
      throw error;
    }
  }
}
