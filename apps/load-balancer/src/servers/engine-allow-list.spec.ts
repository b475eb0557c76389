import { expect, it } from 'vitest';
import { LoadBalancerConfig } from '../load-balancer.config';
import { EngineAllowList } from './engine-allow-list';

const list = (...engineAllowList: string[]) =>
  new EngineAllowList(Object.assign(new LoadBalancerConfig(), { engineAllowList }));
function admits(entries: string[], endpoint: string): boolean {
  try {
    list(...entries).check(endpoint);
    return true;
  } catch (error) {
    expect(error).toMatchObject({ code: 'VALIDATION_FAILED', field: 'endpoint' });
    return false;
  }
}

it('admits all when it is empty', () => {
  expect(admits([], 'http://169.254.169.254/latest')).toBe(true);
});

it.each([
  [['engine-1'], 'http://engine-1:8000', true],
  [['engine-1'], 'http://engine-10:8000', false],
  [['*.engines.svc'], 'http://a.engines.svc:8000', true],
  [['*.engines.svc'], 'http://a.engines.svc.evil.example:8000', false],
  [['*.Engines.SVC'], 'https://A.engines.svc', true],
  [['10.0.0.0/8'], 'http://10.1.2.3:8000', true],
  [['10.0.0.0/8'], 'http://11.1.2.3:8000', false],
  [['10.0.0.0/8'], 'http://10.evil.example:8000', false],
  [['10.0.0.7:8000'], 'http://10.0.0.7:8000', true],
  [['10.0.0.7:8000'], 'http://10.0.0.7:22', false],
  [['fd00::/8'], 'http://[fd00::1]:8000', true],
  [['fd00::/8'], 'http://[fe80::1]:8000', false],
  // The same address in another notation.
  [['10.0.0.0/8'], 'http://0x0a000001:8000', true],
  [['10.0.0.0/8', 'b'], 'http://2130706433/', false],
] as const)('by %j lets %s in: %s', (entries, endpoint, expected) => {
  expect(admits([...entries], endpoint)).toBe(expected);
});

it('refuses a list that is no list of hosts at start', () => {
  expect(() => list('10.0.0.0/99')).toThrow('ENGINE_ALLOW_LIST: 10.0.0.0/99');
});
