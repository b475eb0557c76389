import {
  isBroomwagonError,
  OPERATIONS,
  type OperationName,
  type PoolName,
  type ReplyOf,
  type RequestOf,
} from '@broomwagon/contracts';
import type { TypedClient } from '@broomwagon/messaging';
import { getSchema } from '../../../../libs/messaging/src/validation/json-schema';

const STAMPED: ReadonlySet<string> = new Set(
  Object.entries(OPERATIONS)
    .filter(([, { request }]) => 'stamp' in getSchema(request).properties)
    .map(([operation]) => operation),
);

/**
 * The operations of one pool, repeated until a deadline: all are idempotent. The stamp of each reply is sent with the
 * next call that takes one, so that a call fails if Redis has lost changes.
 */
export class Operations {
  private stamp: string | undefined;

  constructor(
    private readonly client: Pick<TypedClient, 'callWithRetry'>,
    readonly pool: PoolName,
    private readonly options: { deadlineMs: number; signal?: AbortSignal },
  ) {}

  /**
   * @throws BroomwagonError the last error, when it is not retryable or the deadline is near; GENERATION_CHANGED from
   *   all calls that pass on a stamp, until {@link acceptGeneration}
   */
  async call<Name extends OperationName>(
    operation: Name,
    body: RequestOf<Name>,
    deadlineMs = this.options.deadlineMs,
  ): Promise<ReplyOf<Name>> {
    const { stamp } = this;
    const request = STAMPED.has(operation) ? { ...body, stamp } : body;
    const reply = await this.client
      .callWithRetry(this.pool, operation, request, { ...this.options, deadlineMs })
      .catch((error: unknown) => {
        // A takeover that finds no job has a stamp all the same.
        if (isBroomwagonError(error)) this.stamp ??= (error.details as { stamp?: string } | undefined)?.stamp;
        throw error;
      });
    const seen = (reply as { stamp?: unknown } | undefined)?.stamp;
    // The stamp of another generation is not taken: the trainer must reconcile first.
    if (typeof seen === 'string' && getGeneration(this.stamp ?? seen) === getGeneration(seen)) this.stamp = seen;
    return reply;
  }

  /** Accepts the generation of the next reply, for a caller that reconciles. */
  acceptGeneration(): void {
    this.stamp = undefined;
  }
}

function getGeneration(stamp: string): string {
  return stamp.split('.')[0]!;
}
