import { AsyncLocalStorage } from 'node:async_hooks';
import { context, propagation, ROOT_CONTEXT, trace, type Context } from '@opentelemetry/api';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { headers as makeHeaders } from 'nats';
import { injectTrace, inTrace, isTraced } from './trace-context';

const storage = new AsyncLocalStorage<Context>();
const TRACEPARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

beforeAll(() => {
  context.setGlobalContextManager({
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (active, work, self, ...args) => storage.run(active, () => work.call(self as never, ...args)),
    bind: (_, target) => target,
    enable() {
      return this;
    },
    disable() {
      return this;
    },
  });
  propagation.setGlobalPropagator({
    fields: () => ['traceparent'],
    extract: (parent, carrier, getter) => {
      const [, traceId, spanId] = String(getter.get(carrier, 'traceparent')).split('-');
      const found = { traceId: traceId ?? '', spanId: spanId ?? '', traceFlags: 1, isRemote: true };
      return trace.setSpanContext(parent, found);
    },
    inject: (active, carrier, setter) => {
      const span = trace.getSpanContext(active);
      setter.set(carrier, 'traceparent', `00-${span?.traceId}-${span?.spanId}-01`);
    },
  });
});
afterAll(() => {
  context.disable();
  propagation.disable();
});

it('carries the trace of a message through its handler into what the handler sends', async () => {
  const incoming = makeHeaders();
  incoming.set('traceparent', TRACEPARENT);
  expect(isTraced(incoming)).toBe(true);
  const sent = await inTrace(incoming, 'test process', async () => injectTrace(undefined, makeHeaders));
  expect(sent?.get('traceparent')).toContain('0af7651916cd43dd8448eb211c80319c');
});

it('makes no headers where there is no trace', () => {
  expect(isTraced(undefined)).toBe(false);
  expect(isTraced(makeHeaders())).toBe(false);
  expect(injectTrace(undefined, makeHeaders)).toBeUndefined();
});
