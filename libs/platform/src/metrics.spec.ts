import { expect, it } from 'vitest';
import { messageMetrics, Metrics } from './metrics';

it('names metrics alike, gives the same one twice, and refuses names without a unit', async () => {
  const metrics = new Metrics('load-balancer');
  const granted = metrics.counter('leases_granted_total', 'Leases', ['pool']);
  expect(metrics.counter('leases_granted_total', 'Leases')).toBe(granted);
  expect(() => metrics.gauge('leases', 'no unit')).toThrow('expected <noun>_<unit>');
  messageMetrics(metrics).handled('rollout.v1.*.lb.acquire', 'OVERLOADED', 0.002);
  expect(await metrics.text()).toContain(
    'broomwagon_messages_handled_total{subject="rollout.v1.*.lb.acquire",outcome="OVERLOADED",app="load-balancer"} 1',
  );
});
