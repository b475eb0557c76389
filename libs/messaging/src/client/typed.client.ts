import { subjectOf, type OperationName, type ReplyOf, type RequestOf } from '@broomwagon/contracts';
import type { MessagingClient, RequestOptions } from './messaging.client';
import type { RetryOptions } from './retry';

/** The operations of the protocol, typed by the table in libs/contracts. */
export class TypedClient {
  constructor(readonly messaging: MessagingClient) {}

  /** One attempt. @throws BroomwagonError */
  call<Name extends OperationName>(
    pool: string,
    operation: Name,
    body: RequestOf<Name>,
    options?: RequestOptions,
  ): Promise<ReplyOf<Name>> {
    return this.messaging.request<ReplyOf<Name>>(subjectOf(pool, operation), body, options);
  }

  /** Repeated until it succeeds, fails for good or the deadline is near. @throws BroomwagonError */
  callWithRetry<Name extends OperationName>(
    pool: string,
    operation: Name,
    body: RequestOf<Name>,
    options: RetryOptions & Omit<RequestOptions, 'timeoutMs'>,
  ): Promise<ReplyOf<Name>> {
    return this.messaging.requestWithRetry<ReplyOf<Name>>(subjectOf(pool, operation), body, options);
  }

  /** Sends an operation without asking for a reply, as a release may be. */
  send<Name extends OperationName>(pool: string, operation: Name, body: RequestOf<Name>): void {
    this.messaging.publish(subjectOf(pool, operation), body);
  }
}
