import { expect, it } from 'vitest';
import { linkSilenceMs, outlivesSilentLink } from './link-silence';
import { loadConfig } from './load-config';
import { ServiceConfig } from './service.config';

it.each([
  [500, 2_000, false],
  [5_999, 2_000, false],
  [6_000, 2_000, true],
  [9_000, 3_000, true],
  [15_000, 5_000, true],
  [3_600_000, 5_000, true],
])('derives from a time to live of %i ms a silence of %i ms, which leases outlive: %s', (ttlMs, silenceMs, outlive) => {
  expect(linkSilenceMs(ttlMs)).toBe(silenceMs);
  expect(outlivesSilentLink(ttlMs)).toBe(outlive);
});

it('configures one silence for NATS, Redis and the payload store of a service', () => {
  const config = loadConfig(ServiceConfig, { env: { WORKER_TTL_MS: '9s' } });
  expect(config.natsConfig().silenceMs).toBe(3_000);
  expect(config.redisConfig().silenceMs).toBe(3_000);
});
