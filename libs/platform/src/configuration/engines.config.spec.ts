import { expect, it } from 'vitest';
import { withEngines } from './engines.config';
import { loadConfig } from './load-config';
import { ServiceConfig } from './service.config';

class TestConfig extends withEngines(ServiceConfig) {}
const load = (env: Record<string, string | undefined>) => loadConfig(TestConfig, { env });

it('refuses to start with a key for engines and no list of their hosts, and names the setting', () => {
  expect(load({}).engineAllowList).toEqual([]);
  for (const key of [{ ENGINE_API_KEY: 'k' }, { ENGINE_API_KEYS: 'actor=k' }]) {
    expect(() => load(key)).toThrow(/ENGINE_ALLOW_LIST: must name the hosts .* as 127\.0\.0\.1/);
    expect(load({ ...key, ENGINE_ALLOW_LIST: '127.0.0.1' }).engineAllowList).toEqual(['127.0.0.1']);
  }
});

it('has keys by pool, which go before the key of all pools', () => {
  const list = { ENGINE_ALLOW_LIST: '127.0.0.1' };
  const config = load({ ...list, ENGINE_API_KEY: 'all', ENGINE_API_KEYS: 'actor=a=b,reward=c' });
  expect(['actor', 'reward', 'other'].map((pool) => config.findEngineKey(pool))).toEqual(['a=b', 'c', 'all']);
  expect(load({ ...list, ENGINE_API_KEYS: 'actor=a' }).findEngineKey('reward')).toBeUndefined();
  expect(() => load({ ...list, ENGINE_API_KEYS: 'secret' })).toThrow('ENGINE_API_KEYS');
});
