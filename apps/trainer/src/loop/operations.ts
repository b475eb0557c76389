import type { OperationName, PoolName, ReplyOf, RequestOf } from '@broomwagon/contracts';
import type { TypedClient } from '@broomwagon/messaging';

/** The operations of one pool, repeated until a deadline: every one of them is idempotent. */
export class Operations {
  constructor(
    private readonly client: TypedClient,
    readonly pool: PoolName,
    private readonly options: { deadlineMs: number; signal?: AbortSignal },
  ) {}

  /** @throws BroomwagonError the last error, when it is not retryable or the deadline is near */
  call<Name extends OperationName>(operation: Name, body: RequestOf<Name>): Promise<ReplyOf<Name>> {
    return this.client.callWithRetry(this.pool, operation, body, this.options);
  }
}
