import {
  BroomwagonError,
  type OperationName,
  type PoolName,
  type ReplyOf,
  type RequestOf,
} from '@broomwagon/contracts';
import { withRetry } from '@broomwagon/messaging';
import type { Gateway } from './gateway';

/** The operations of trainers over HTTP, repeated as over NATS. */
export class HttpOperations {
  constructor(private readonly gateway: Gateway) {}

  async callWithRetry<Name extends OperationName>(
    pool: PoolName,
    operation: Name,
    body: RequestOf<Name>,
    options: { deadlineMs: number },
  ): Promise<ReplyOf<Name>> {
    return withRetry(async () => {
      const { status, body: reply } = await this.gateway.post(`/rounds/v1/${pool}/${operation}`, body);
      if (status !== 200) throw BroomwagonError.fromWire((reply as { error: never }).error);
      return reply as ReplyOf<Name>;
    }, options);
  }
}
