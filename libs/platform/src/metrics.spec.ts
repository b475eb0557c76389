import { expect, it } from 'vitest';
import { messageMetrics, Metrics } from './metrics';

it('gives the same metric twice, and refuses metrics that promtool refuses', async () => {
  const metrics = new Metrics('load-balancer');
  const granted = metrics.counter('leases_granted_total', 'Leases', ['pool']);
  expect(metrics.counter('leases_granted_total', 'Leases')).toBe(granted);
  for (const name of ['leases_count', 'leases_total', 'wait_milliseconds', 'leases_gauge', 'Leases', 'leases:ready']) {
    expect(() => metrics.gauge(name, 'Leases'), name).toThrow(`Metric ${name} `);
  }
  expect(() => metrics.counter('leases_granted', 'Leases')).toThrow('does not end in _total');
  expect(() => metrics.histogram('answers_sum', 'Answers')).toThrow('reserves');
  expect(() => metrics.gauge('leases', '')).toThrow('no help text');
  expect(() => metrics.gauge('waste_ratio', 'Waste', ['pool', 'job'])).toThrow('a label that Prometheus sets');
  messageMetrics(metrics).handled('rollout.v1.*.lb.acquire', 'OVERLOADED', 0.002);
  expect(await metrics.text()).toContain(
    'broomwagon_messages_handled_total{subject="rollout.v1.*.lb.acquire",outcome="OVERLOADED",app="load-balancer"} 1',
  );
});
