import { describe, expect, it } from 'vitest';
import { parseNatMap, parseRedisAddress } from './redis-address';

describe('addresses of Redis', () => {
  it.each([
    ['redis://10.0.0.1', { kind: 'server', usesTls: false, hosts: [{ host: '10.0.0.1', port: 6379 }] }],
    [
      'rediss://:p%40ss@redis:1/2',
      { kind: 'server', usesTls: true, hosts: [{ host: 'redis', port: 1 }], password: 'p@ss' },
    ],
    [
      'redis+cluster://user:pw@a:7000,[::1]:7001,b',
      {
        kind: 'cluster',
        usesTls: false,
        hosts: [
          { host: 'a', port: 7000 },
          { host: '::1', port: 7001 },
          { host: 'b', port: 6379 },
        ],
        username: 'user',
        password: 'pw',
      },
    ],
    [
      'rediss+sentinel://s1,s2:26380/main',
      {
        kind: 'sentinel',
        usesTls: true,
        hosts: [
          { host: 's1', port: 26_379 },
          { host: 's2', port: 26_380 },
        ],
        primaryName: 'main',
      },
    ],
  ])('reads %s', (url, address) => expect(parseRedisAddress(url)).toEqual(address));

  it.each([
    ['several servers without a Cluster', 'redis://a:1,b:2'],
    ['Sentinels without the name of the primary', 'redis+sentinel://a:1,b:2'],
    ['a database of a Cluster', 'redis+cluster://a:1/3'],
    ['an empty host', 'redis+cluster://a:1,,b:2'],
    ['a port that is none', 'redis+cluster://a:70000'],
    ['a login that cannot be decoded', 'redis://:%zz@a'],
    ['another scheme', 'http://a'],
    ['no host', 'redis://'],
  ])('refuses %s', (_, url) => expect(parseRedisAddress(url)).toBeUndefined());

  it('reads a map of announced addresses', () => {
    expect(parseNatMap('10.0.0.1:6379=localhost:7001, [fd00::1]:6379=b:2')).toEqual({
      '10.0.0.1:6379': { host: 'localhost', port: 7001 },
      'fd00::1:6379': { host: 'b', port: 2 },
    });
    expect(parseNatMap('10.0.0.1=localhost:7001')).toBeUndefined();
    expect(parseNatMap('10.0.0.1:1')).toBeUndefined();
  });
});
