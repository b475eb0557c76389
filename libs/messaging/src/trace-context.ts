import {
  context,
  propagation,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  type Context,
  type TextMapGetter,
  type TextMapSetter,
} from '@opentelemetry/api';
import type { MsgHdrs } from 'nats';

const TRACEPARENT = 'traceparent';
const tracer = trace.getTracer('@broomwagon/messaging');

const getter: TextMapGetter<MsgHdrs> = {
  get: (carrier, key) => carrier.get(key) || undefined,
  keys: (carrier) => carrier.keys(),
};
const setter: TextMapSetter<MsgHdrs> = { set: (carrier, key, value) => carrier.set(key, value) };

/** True when a message belongs to a trace. Untraced messages must cost nothing. */
export function isTraced(headers: MsgHdrs | undefined): headers is MsgHdrs {
  return headers !== undefined && headers.has(TRACEPARENT);
}

/** Runs the work of one message as a span of the trace its headers name. */
export function inTrace<T>(headers: MsgHdrs, name: string, work: () => Promise<T>): Promise<T> {
  const parent: Context = propagation.extract(ROOT_CONTEXT, headers, getter);
  const span = tracer.startSpan(name, { kind: SpanKind.SERVER }, parent);
  return context.with(trace.setSpan(parent, span), async () => {
    try {
      return await work();
    } catch (error) {
      span.setStatus({ code: SpanStatusCode.ERROR, message: (error as Error).message });
      throw error;
    } finally {
      span.end();
    }
  });
}

/** Writes the active trace into the headers of a message; makes headers only if there is one. */
export function injectTrace(headers: MsgHdrs | undefined, make: () => MsgHdrs): MsgHdrs | undefined {
  if (trace.getActiveSpan() === undefined) {
    return headers;
  }
  const carrier = headers ?? make();
  propagation.inject(context.active(), carrier, setter);
  return carrier;
}
