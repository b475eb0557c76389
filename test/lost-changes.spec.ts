import { eventSubject } from '@broomwagon/contracts';
import { connectRedis } from '@broomwagon/state';
import { testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { KeySnapshot } from '../libs/state/src/rounds/key-snapshot.fixture';
import { AdminApi } from './system/admin-api';
import { CommandLine } from './system/command-line';
import { Gateway } from './system/gateway';
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
  const gateway = await Gateway.start(bench.prefix, bench.pool, { apiKeys: 'on' });
  const create = async () => (await api.send('POST', '/tokens', JSON.stringify({ name: 'ci', role: 'client' }))).body;
  const [revoked, kept] = [await create(), await create()];
  const now = Date.now.bind(Date);
  let shiftMs = 0;
  /** Whether the gateway takes each token as a key, after the 5 s for which a gateway keeps a token in memory. */
  const accepts = async () => {
    shiftMs += 5_000;
    const later = vi.spyOn(Date, 'now').mockImplementation(() => now() + shiftMs);
    const replies = [revoked, kept].map(({ token }) =>
      gateway.post('/tokenize', { prompt: 'a' }, { authorization: `Bearer ${token}` }),
    );
    const statuses = (await Promise.all(replies)).map(({ status }) => status !== 401);
    later.mockRestore();
    return statuses;
  };
  expect(await accepts()).toEqual([true, true]);
  const snapshot = await KeySnapshot.of(redis, `${bench.prefix}:credentials`);
  expect((await api.send('DELETE', `/tokens/${revoked.tokenId}`)).body).toEqual({ revoked: true });
  expect(await accepts()).toEqual([false, true]);
  const tokens = async (): Promise<string[]> =>
    (await api.send('GET', '/tokens')).body.tokens.map(({ tokenId }: { tokenId: string }) => tokenId);
  await snapshot.restore();
  await expect.poll(tokens).toEqual([kept.tokenId]);
  expect(await accepts()).toEqual([false, true]);
  const { body } = await api.send('GET', '/audit-log?operation=token.revoke&actorId=admin-api');
  expect(body.entries.map(({ request }: { request: object }) => request)).toEqual([{ tokenId: revoked.tokenId }]);
  await gateway.close();
});

describe('changes of a pool that may be lost with the last seconds of Redis', () => {
  const events: object[] = [];
  let before: KeySnapshot;
  beforeAll(async () => {
    const [api] = apis as [AdminApi];
    await bench.register();
    const { messaging } = bench.client;
    messaging.subscribe(eventSubject(bench.pool, 'pool.set-back'), (event) => void events.push(event));
    await messaging.flush();
    before = await KeySnapshot.of(redis, `${bench.prefix}:{${bench.pool}}`);
    for (const change of ['pause', 'servers/s1/cordon']) {
      expect((await api.send('POST', `/pools/${bench.pool}/${change}`)).status).toBe(200);
    }
    expect(await state(api)).toEqual({ isPaused: true, server: 'cordoned' });
  });
  const state = async (api: AdminApi) => {
    const [pool, server] = await Promise.all([
      api.send('GET', `/pools/${bench.pool}`),
      api.send('GET', `/pools/${bench.pool}/servers/s1`),
    ]);
    return { isPaused: pool.body.paused, server: server.body.state };
  };
  const read = async (api: AdminApi) => (await api.send('GET', `/pools/${bench.pool}/lost-changes`)).body;

  it('are none before Redis is set back', async () => {
    const [api] = apis as [AdminApi];
    expect(await read(api)).toEqual({ changes: [] });
    expect((await api.send('GET', `/pools/${bench.pool}`)).body.setBackAtMs).toBeUndefined();
  });

  it('are an event once, and an alarm', async () => {
    const [api] = apis as [AdminApi];
    await before.restore();
    await redis.hset(`${bench.prefix}:{${bench.pool}}:meta`, 'generationOf', 'another process');
    const alarm = new RegExp(`alarms_active\\{[^}]*pool="${bench.pool}",alarm="changes-may-be-lost"[^}]*\\} 1`);
    await expect.poll(async () => (await fetch(`${api.url}/metrics`)).text()).toMatch(alarm);
    await expect.poll(() => state(api)).toEqual({ isPaused: false, server: 'ready' });
    await expect.poll(() => events).toMatchObject([{ type: 'pool.set-back', pool: bench.pool }]);
  });

  it('are listed by each replica, also by a later one, and by the command line', async () => {
    const named = [
      { operation: 'pool.pause', request: {}, result: 'done' },
      { operation: 'server.cordon', request: { serverId: 's1' }, result: 'done' },
    ];
    apis.push(await AdminApi.start(bench.prefix));
    for (const api of apis) await expect.poll(async () => (await read(api)).changes).toMatchObject(named);
    const [api, , late] = apis as [AdminApi, AdminApi, AdminApi];
    const { setBackAtMs } = (await api.send('GET', `/pools/${bench.pool}`)).body;
    expect(await read(late)).toMatchObject({ setBackAtMs });
    expect((await api.send('POST', `/pools/${bench.pool}/servers/s1/uncordon`)).status).toBe(200);
    expect((await read(late)).changes).toMatchObject(named);

    const cli = (token: string) => new CommandLine(['--url', api.url, '--token', token, '--pool', bench.pool]);
    const { exitCode, stdout } = await cli(api.rootToken).run('status');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(
      /Redis was restarted or set back: check these changes.*\n.*\n.* pool\.pause .*\n.* server\.cordon /,
    );
    const shown = await cli(await api.createToken('viewer', [bench.pool])).run('status');
    expect(shown).toMatchObject({ exitCode: 0, stdout: expect.not.stringContaining('server.cordon') as string });
  });
});
