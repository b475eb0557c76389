import { Metrics } from '@broomwagon/platform';
import { expect, it } from 'vitest';
import { LoadBalancerMetrics } from './load-balancer.metrics';

it('shows as greatest drift only leases that engines do not run, not requests of others on an engine', async () => {
  const metrics = new Metrics('test');
  const balancer = new LoadBalancerMetrics(metrics);
  balancer.drift('p', [2, -7, 1]);
  expect(await metrics.text()).toMatch(/drift_leases\{pool="p",of="sum",app="test"\} -4/);
  expect(await metrics.text()).toMatch(/drift_leases\{pool="p",of="greatest",app="test"\} 2/);
});
