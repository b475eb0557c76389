import { connectRedis } from '@broomwagon/state';
import { testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { KeySnapshot } from '../libs/state/src/rounds/key-snapshot.fixture';
import { AdminApi } from './system/admin-api';
import { ServiceBench } from './system/service-bench';

const redis = connectRedis({ url: testRedisUrl() });
let bench: ServiceBench;
let apis: AdminApi[];
beforeAll(async () => {
  bench = await ServiceBench.open({ logLevel: 'silent' }, 1);
  await bench.begin();
  apis = await Promise.all([AdminApi.start(bench.prefix), AdminApi.start(bench.prefix)]);
});
afterAll(async () => {
  for (const api of apis ?? []) await api.close();
  await bench?.engine.close();
  await bench?.close();
  redis.disconnect();
});

it('revokes a token again that Redis has again after it was set back, and no other', async () => {
  const [api] = apis as [AdminApi];
  const create = async () => (await api.send('POST', '/tokens', JSON.stringify({ name: 'ci', role: 'viewer' }))).body;
  const [revoked, kept] = [await create(), await create()];
  const snapshot = await KeySnapshot.of(redis, `${bench.prefix}:credentials`);
  expect((await api.send('DELETE', `/tokens/${revoked.tokenId}`)).body).toEqual({ revoked: true });
  const tokens = async (): Promise<string[]> =>
    (await api.send('GET', '/tokens')).body.tokens.map(({ tokenId }: { tokenId: string }) => tokenId);
  await snapshot.restore();
  await expect.poll(tokens).toEqual([kept.tokenId]);
  const { body } = await api.send('GET', '/audit-log?operation=token.revoke&actorId=admin-api');
  expect(body.entries.map(({ request }: { request: object }) => request)).toEqual([{ tokenId: revoked.tokenId }]);
});

it('raises an alarm for changes of a pool that may be lost with the last seconds of Redis', async () => {
  const [api] = apis as [AdminApi];
  await bench.register();
  const alarm = async () => {
    const text = await (await fetch(`${api.url}/metrics`)).text();
    return new RegExp(`alarms_active\\{[^}]*pool="${bench.pool}",alarm="changes-may-be-lost"[^}]*\\} (\\d)`).exec(
      text,
    )?.[1];
  };
  expect((await api.send('POST', `/pools/${bench.pool}/servers/s1/cordon`)).status).toBe(200);
  await expect
    .poll(async () => {
      await redis.hset(`${bench.prefix}:{${bench.pool}}:meta`, 'generationOf', 'another process');
      return alarm();
    })
    .toBe('1');
});
