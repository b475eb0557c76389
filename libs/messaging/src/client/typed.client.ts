import { randomUUID } from 'node:crypto';
import {
  isBroomwagonError,
  buildSubject,
  type OperationName,
  type ReplyOf,
  type RequestOf,
} from '@broomwagon/contracts';
import type { MessagingClient, RequestOptions } from './messaging.client';
import type { RetryOptions } from './retry';

/** Fields with the id of a call, by operation. A repeat with the same id has no further effect. */
const CALL_IDS: Partial<Record<OperationName, string>> = {
  'prompt.remember': 'rememberId',
  'server.register': 'registrationId',
};

/** Calls the operations of the protocol, with the types of libs/contracts. */
export class TypedClient {
  constructor(readonly messaging: MessagingClient) {}

  /** Calls an operation once. @throws BroomwagonError */
  call<Name extends OperationName>(
    pool: string,
    operation: Name,
    body: RequestOf<Name>,
    options?: RequestOptions,
  ): Promise<ReplyOf<Name>> {
    const subject = buildSubject(pool, operation);
    return withCallId(operation, body, (named) => this.messaging.request<ReplyOf<Name>>(subject, named, options));
  }

  /** Calls an operation until a call succeeds, fails for good, or the deadline is near. @throws BroomwagonError */
  callWithRetry<Name extends OperationName>(
    pool: string,
    operation: Name,
    body: RequestOf<Name>,
    options: RetryOptions & Omit<RequestOptions, 'timeoutMs'>,
  ): Promise<ReplyOf<Name>> {
    const subject = buildSubject(pool, operation);
    return withCallId(operation, body, (named) =>
      this.messaging.requestWithRetry<ReplyOf<Name>>(subject, named, options),
    );
  }

  /** Sends an operation without a reply subject, for example a release. */
  send<Name extends OperationName>(pool: string, operation: Name, body: RequestOf<Name>): void {
    this.messaging.publish(buildSubject(pool, operation), body);
  }
}

/** Sends a body, with an id of the call if the operation has such a field and the body lacks it. */
function withCallId<Reply>(
  operation: OperationName,
  body: object,
  send: (body: object) => Promise<Reply>,
): Promise<Reply> {
  const field = CALL_IDS[operation];
  if (field === undefined || Object.hasOwn(body, field)) return send(body);
  return send({ ...body, [field]: randomUUID() }).catch((error: unknown) => {
    // A service of the previous release does not know the field.
    if (isBroomwagonError(error, 'VALIDATION_FAILED') && error.field === field) return send(body);
    throw error;
  });
}
