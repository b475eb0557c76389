import { loadConfig } from '@broomwagon/platform';
import { expect, it } from 'vitest';
import { AdminApiConfig } from '../apps/admin-api/src/admin-api.config';
import { GatewayConfig } from '../apps/gateway/src/gateway.config';
import { LoadBalancerConfig } from '../apps/load-balancer/src/load-balancer.config';
import { CoordinatorConfig } from '../apps/trainer-coordinator/src/coordinator.config';
import { WorkerConfig } from '../apps/worker/src/worker.config';

it.each([AdminApiConfig, GatewayConfig, LoadBalancerConfig, CoordinatorConfig, WorkerConfig])(
  'accepts the default of each setting: %s',
  (type) => {
    expect(() => loadConfig<object>(type, { env: {} })).not.toThrow();
  },
);
