import {
  context,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type Span,
  type TextMapGetter,
  type TextMapSetter,
} from '@opentelemetry/api';
import type { MsgHdrs } from 'nats';

/** Whether this process exports traces, set once by libs/platform. Without traces, tracing costs nothing. */
export const tracing = { isOn: false };

const tracer = trace.getTracer('broomwagon');
const KINDS = { internal: SpanKind.INTERNAL, server: SpanKind.SERVER, client: SpanKind.CLIENT };
const getter: TextMapGetter<MsgHdrs> = {
  get: (carrier, key) => carrier.get(key) || undefined,
  keys: (carrier) => carrier.keys(),
};
const setter: TextMapSetter<MsgHdrs> = { set: (carrier, key, value) => carrier.set(key, value) };

/** Operations that begin a trace. Any other message without a trace, for example a heartbeat, has no span. */
const BEGINS_TRACE: ReadonlySet<string> = new Set(['round.open']);

/**
 * Handles a message as a span of the trace in its headers. A message without a trace is handled without a span, unless
 * its operation begins a trace.
 */
export function inMessageSpan<T>(
  headers: MsgHdrs | undefined,
  pattern: string,
  pool: string | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (!tracing.isOn) return work();
  const parent = headers === undefined ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, headers, getter);
  const operation = parseOperation(pattern);
  if (trace.getSpan(parent) === undefined && !BEGINS_TRACE.has(operation)) return work();
  const attributes = { 'broomwagon.pool': pool };
  return runInSpan(parent, SpanKind.SERVER, `process ${operation}`, attributes, work);
}

/** Sends a request as a span of the active trace, if there is one. */
export function inRequestSpan<T>(subject: string, work: () => Promise<T>): Promise<T> {
  if (!tracing.isOn || trace.getActiveSpan() === undefined) return work();
  return runInSpan(context.active(), SpanKind.CLIENT, `request ${parseOperation(subject)}`, {}, work);
}

/** Options of a span. */
export interface SpanOptions {
  /** W3C trace context of the parent; undefined: the active trace, if there is one. */
  traceparent?: string;
  name: string;
  kind?: 'internal' | 'server' | 'client';
  attributes?: Attributes;
  /** True: begins a trace if there is none. */
  beginsTrace?: boolean;
}

/** Changes a span: attributes that are known at the end, and the error with which the work has ended. */
export type EndSpan = (attributes: Attributes, errorType?: string) => void;

/** Runs work as a span of a trace that another process or call has started. */
export function inSpan<T>(options: SpanOptions, work: (end: EndSpan) => Promise<T>): Promise<T> {
  if (!tracing.isOn) return work(ignore);
  const { traceparent, name, kind = 'internal', attributes = {}, beginsTrace } = options;
  const parent = traceparent === undefined ? context.active() : propagation.extract(ROOT_CONTEXT, { traceparent });
  if (trace.getSpan(parent) === undefined && !beginsTrace) return work(ignore);
  return runInSpan(parent, KINDS[kind], name, attributes, (span) =>
    work((more, errorType) => {
      span.setAttributes(more);
      if (errorType !== undefined) setError(span, errorType);
    }),
  );
}

/** Records a span that has ended, whose parent another process has started. */
export function recordSpan({ traceparent, name, attributes }: SpanOptions, beganAtMs: number, endedAtMs: number): void {
  if (!tracing.isOn || traceparent === undefined) return;
  const parent = propagation.extract(ROOT_CONTEXT, { traceparent });
  tracer.startSpan(name, { attributes, startTime: beganAtMs }, parent).end(endedAtMs);
}

/** Returns the active trace as a W3C `traceparent` for {@link inSpan}; undefined without a trace. */
export function activeTraceparent(): string | undefined {
  if (trace.getActiveSpan() === undefined) return undefined;
  const carrier: { traceparent?: string } = {};
  propagation.inject(context.active(), carrier);
  return carrier.traceparent;
}

/** Writes the active trace into the headers of a message. Creates headers only if there is a trace. */
export function injectTrace(headers: MsgHdrs | undefined, make: () => MsgHdrs): MsgHdrs | undefined {
  if (!tracing.isOn || trace.getActiveSpan() === undefined) return headers;
  const carrier = headers ?? make();
  propagation.inject(context.active(), carrier, setter);
  return carrier;
}

function runInSpan<T>(
  parent: Context,
  kind: SpanKind,
  name: string,
  attributes: Attributes,
  work: (span: Span) => Promise<T>,
): Promise<T> {
  const span = tracer.startSpan(name, { kind, attributes }, parent);
  return context.with(trace.setSpan(parent, span), async () => {
    try {
      return await work(span);
    } catch (error) {
      setError(span, (error as { code?: string }).code ?? (error as Error).name);
      throw error;
    } finally {
      span.end();
    }
  });
}

/** @param type code of the error, which has few values */
function setError(span: Span, type: string): void {
  span.setStatus({ code: SpanStatusCode.ERROR, message: type });
  span.setAttribute('error.type', type);
}

function ignore(): void {}

/** Names ids as attributes of a span: `roundId` becomes `broomwagon.round_id`. */
export function toSpanAttributes(ids: Readonly<Record<string, string>>): Attributes {
  if (!tracing.isOn) return {};
  const toName = (name: string) => name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(ids).map(([name, id]) => [`broomwagon.${toName(name)}`, id]));
}

/** Returns `lb.acquire` for `rollout.v1.<pool>.lb.acquire`, so that names of spans have few values. */
function parseOperation(subject: string): string {
  return subject.split('.').slice(3).join('.');
}
