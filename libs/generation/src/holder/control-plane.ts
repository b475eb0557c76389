import type { OperationName, ReplyOf, RequestOf } from '@broomwagon/contracts';
import type { RequestOptions, RetryOptions, TypedClient } from '@broomwagon/messaging';

/** The operations of the one pool that this process serves. */
export class ControlPlane {
  constructor(
    private readonly client: Pick<TypedClient, 'call' | 'callWithRetry'>,
    readonly pool: string,
  ) {}

  /** Makes a call once. @throws BroomwagonError */
  call<Name extends OperationName>(
    operation: Name,
    body: RequestOf<Name>,
    options?: RequestOptions,
  ): Promise<ReplyOf<Name>> {
    return this.client.call(this.pool, operation, body, options);
  }

  /** Repeats a call until it succeeds, fails for good, or the deadline is near. @throws BroomwagonError */
  callWithRetry<Name extends OperationName>(
    operation: Name,
    body: RequestOf<Name>,
    options: RetryOptions,
  ): Promise<ReplyOf<Name>> {
    return this.client.callWithRetry(this.pool, operation, body, options);
  }
}
