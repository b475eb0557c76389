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

/** Fields of operations that name a call, so that a repeat of it has no further effect. */
const CALL_IDS: Partial<Record<OperationName, string>> = {
  'prompt.remember': 'rememberId',
  'server.register': 'registrationId',
};

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
    const subject = buildSubject(pool, operation);
    return withCallId(operation, body, (named) => this.messaging.request<ReplyOf<Name>>(subject, named, options));
  }

  /** Repeated until it succeeds, fails for good or the deadline is near. @throws BroomwagonError */
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

  /** Sends an operation without asking for a reply, as a release may be. */
  send<Name extends OperationName>(pool: string, operation: Name, body: RequestOf<Name>): void {
    this.messaging.publish(buildSubject(pool, operation), body);
  }
}

/** Sends a body with an id of the call, if the operation has one and the body does not. */
function withCallId<Reply>(
  operation: OperationName,
  body: object,
  send: (body: object) => Promise<Reply>,
): Promise<Reply> {
  const field = CALL_IDS[operation];
  if (field === undefined || Object.hasOwn(body, field)) return send(body);
  return send({ ...body, [field]: randomUUID() }).catch((error: unknown) => {
    // A service of the release before does not know the field.
    if (isBroomwagonError(error, 'VALIDATION_FAILED') && error.field === field) return send(body);
    throw error;
  });
}
