export * from './client/messaging.client';
export { UndeliveredError } from './client/request-multiplexer';
export { retryDelayMs, withRetry, type RetryOptions } from './client/retry';
export * from './client/typed.client';
export * from './connection';
export { RereadFile } from './reread-file';
export * from './handlers-complete';
export {
  activeTraceparent,
  type EndSpan,
  inSpan,
  recordSpan,
  type SpanOptions,
  toSpanAttributes,
  tracing,
} from './trace-context';
export * from './transport/message-context';
export type { MessageMetrics } from './transport/message-metrics';
export * from './transport/nats.transport';
export { Operation } from './transport/operation.decorator';
export * from './transport/reply-subjects';
export { attachTransport } from './transport/rethrow.filter';
export type { Pools } from './transport/subjects';
export * from './validation/contract.pipe';
export { fieldsOfQuery } from './validation/fields-of-query';
export type { ContractClass } from './validation/json-schema';
export { validate, type FieldError } from './validation/validator';
export { decodeBody, type JsonObject, readWaitMs } from './wire';
export * from './events/stream';
