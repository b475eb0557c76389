import {
  context,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Attributes,
  type Context,
  type TextMapGetter,
  type TextMapSetter,
} from '@opentelemetry/api';
import type { MsgHdrs } from 'nats';

/** Whether this process exports traces, set once by libs/platform. Without traces, tracing costs nothing. */
export const tracing = { isOn: false };

const tracer = trace.getTracer('broomwagon');
const getter: TextMapGetter<MsgHdrs> = {
  get: (carrier, key) => carrier.get(key) || undefined,
  keys: (carrier) => carrier.keys(),
};
const setter: TextMapSetter<MsgHdrs> = { set: (carrier, key, value) => carrier.set(key, value) };

/** Handles a message as a span of the trace in its headers, or of a new trace. */
export function inMessageSpan<T>(headers: MsgHdrs | undefined, pattern: string, work: () => Promise<T>): Promise<T> {
  if (!tracing.isOn) return work();
  const parent = headers === undefined ? ROOT_CONTEXT : propagation.extract(ROOT_CONTEXT, headers, getter);
  return runInSpan(parent, SpanKind.SERVER, `process ${parseOperation(pattern)}`, {}, work);
}

/** Sends a request as a span of the active trace, if there is one. */
export function inRequestSpan<T>(subject: string, work: () => Promise<T>): Promise<T> {
  if (!tracing.isOn || trace.getActiveSpan() === undefined) return work();
  return runInSpan(context.active(), SpanKind.CLIENT, `request ${parseOperation(subject)}`, {}, work);
}

/**
 * Runs work as a span of a trace that another process or call has started.
 * @param traceparent result of {@link activeTraceparent}; undefined: the active trace, if there is one
 */
export function inSpan<T>(
  traceparent: string | undefined,
  name: string,
  attributes: Attributes,
  work: () => Promise<T>,
): Promise<T> {
  if (!tracing.isOn) return work();
  const parent = traceparent === undefined ? context.active() : propagation.extract(ROOT_CONTEXT, { traceparent });
  if (trace.getSpan(parent) === undefined) return work();
  return runInSpan(parent, SpanKind.INTERNAL, name, attributes, work);
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
  work: () => Promise<T>,
): Promise<T> {
  const span = tracer.startSpan(name, { kind, attributes }, parent);
  return context.with(trace.setSpan(parent, span), async () => {
    try {
      return await work();
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: (error as { code?: string }).code });
      throw error;
    } finally {
      span.end();
    }
  });
}

/** Returns `lb.acquire` for `rollout.v1.<pool>.lb.acquire`, so that names of spans have few values. */
function parseOperation(subject: string): string {
  return subject.split('.').slice(3).join('.');
}
