import type { Epoch } from '@broomwagon/contracts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openTestStore, type TestStore } from './routing-store.fixture';
import type { ServerStore } from '../servers/server.store';
import type { Granted } from '../leases/grants';
import type { AcquireEntry } from '../leases/lease.store';

let test: TestStore;
let servers: ServerStore;
let worker: { workerId: string; workerEpoch: Epoch };
beforeEach(async () => {
  test = openTestStore();
  ({ servers } = test);
  worker = await test.worker('w');
});
afterEach(() => test.close());

const acquire = async (wanted: Partial<AcquireEntry> = {}) =>
  (await test.acquire(worker, wanted)) as unknown as Granted & { acquireId: string; error?: string };

describe('restrictions', () => {
  it('are kept: minimum and lag of the weights, excluded servers, labels', async () => {
    await test.server('old', 100, { weightVersion: 3 });
    await test.server('mid', 100, { weightVersion: 4 });
    await test.server('new', 100, { weightVersion: 5 });
    await servers.update(test.pool, { serverId: 'mid', labels: { zone: 'z', gpu: 'h200' } });
    const only = async (wanted: Partial<AcquireEntry>) => {
      const places = new Set<string>();
      for (let n = 0; n < 6; n++) {
        const { serverId, acquireId } = await acquire(wanted);
        places.add(serverId);
        await test.release(acquireId);
      }
      return [...places].sort();
    };
    expect(await only({ minWeightVersion: 4 })).toEqual(['mid', 'new']);
    expect(await only({ maxWeightLag: 0 })).toEqual(['new']);
    expect(await only({ maxWeightLag: 1 })).toEqual(['mid', 'new']);
    expect(await only({ excludeServers: ['old', 'new'] })).toEqual(['mid']);
    expect(await only({ labels: { zone: 'z' } })).toEqual(['mid']);
    expect(await acquire({ labels: { zone: 'other' } })).toMatchObject({ error: 'NO_SERVER_AVAILABLE' });
    // When the newest server is removed, the lag is counted from the next version.
    await test.servers.remove(test.pool, { serverId: 'new' });
    expect(await only({ maxWeightLag: 0 })).toEqual(['mid']);
  });

  it('find the only server that fits among 700, though it is the last in order', async () => {
    await Promise.all(Array.from({ length: 700 }, (_, n) => test.server(`server-${n}`)));
    const { epoch } = await test.server('wanted', 100, { weightVersion: 7 });
    for (let n = 0; n < 3; n++) await acquire({ minWeightVersion: 7 });
    const slowScans = async () => (await test.pools.status(test.pool)).slowScans;
    const before = await slowScans();
    const best = [{ serverId: 'wanted', key: 3 }];
    expect(await acquire({ minWeightVersion: 7 })).toMatchObject({ serverId: 'wanted', key: 3, best, eligible: 701 });
    expect(await acquire({ excludeServers: ['wanted'] })).toMatchObject({ branch: 'tie', key: 0 });
    expect(await slowScans()).toBe(before);
    // Earlier versions wrote no index entries. Without the entries of a server all servers are scanned, until the next
    // probe or heartbeat of the server adds its entries.
    await test.redis.hdel(`${test.root}:servers:index-entries`, 'wanted');
    expect(await acquire({ minWeightVersion: 7 })).toMatchObject({ serverId: 'wanted', key: 4 });
    expect(await slowScans()).toBe(before + 1);
    await test.servers.recordProbes(test.pool, ['wanted']);
    expect(await acquire({ minWeightVersion: 7 })).toMatchObject({ serverId: 'wanted', key: 5 });
    expect(await slowScans()).toBe(before + 1);
    // A version without index entries changes a server: acquires never find the server by its old values, and find the
    // server by its new values after its next heartbeat or probe.
    const changeWithoutIndex = async (from: number, to: number) => {
      await test.servers.heartbeat(test.pool, { serverId: 'wanted', epoch, weightVersion: to });
      await test.redis.hset(`${test.root}:servers:index-entries`, 'wanted', `@${from}|`);
      await test.redis.smove(`${test.root}:servers:with:@${to}|`, `${test.root}:servers:with:@${from}|`, 'wanted');
      await test.redis.sadd(`${test.root}:servers:version-entries`, `@${from}|`);
    };
    await changeWithoutIndex(7, 9);
    expect(await acquire({ weightVersion: 7 })).toMatchObject({ error: 'NO_SERVER_AVAILABLE' });
    await changeWithoutIndex(9, 8);
    await test.servers.recordProbes(test.pool, ['wanted']);
    expect(await acquire({ weightVersion: 8 })).toMatchObject({ serverId: 'wanted', key: 6 });
  });

  it('of a batch are each kept, in the order of the policy, without keys left behind', async () => {
    await Promise.all(
      Array.from({ length: 120 }, (_, n) => test.server(`server-${n}`, 2, { weightVersion: n < 100 ? 8 : 9 })),
    );
    for (const n of [100, 104, 108]) {
      await servers.update(test.pool, { serverId: `server-${n}`, labels: { zone: 'z' } });
    }
    const { results } = await test.leases.acquire(
      test.pool,
      Array.from({ length: 8 }, (_, n) => ({
        acquireId: `b${n}`,
        requestId: 'r',
        ...worker,
        ...(n < 7
          ? { labels: { zone: 'z' }, minWeightVersion: 9 }
          : { maxWeightLag: 0, excludeServers: ['server-101'] }),
      })),
    );
    const places = results.map((result) =>
      'serverId' in result ? result.serverId : (result as { error: string }).error,
    );
    expect(places.slice(0, 3).sort()).toEqual(['server-100', 'server-104', 'server-108']);
    expect(places.slice(3, 6)).toEqual(places.slice(0, 3));
    expect(places[6]).toBe('SERVERS_FULL');
    expect(places[7]).toBe('server-102');
    expect((await test.redis.keys(`${test.root}:narrowed*`)).length).toBe(0);
    for (let n = 0; n < 120; n++) await test.servers.remove(test.pool, { serverId: `server-${n}` });
    expect(await test.redis.keys(`${test.root}:servers:*`)).toEqual([]);
  });

  it('block no waiter for another server, and are served when a server fits', async () => {
    await test.server('a', 1);
    const holder = await acquire();
    const waiting = (name: string, more: object) =>
      test.acquire(worker, { acquireId: name, waitMs: 20_000, replyTo: `inbox.${name}`, ...more });
    await waiting('labelled', { labels: { zone: 'z' } });
    await waiting('not on a', { excludeServers: ['a'] });
    await waiting('any', {});
    const inboxes = (reply: { answers: { replyTo: string }[] }) => reply.answers.map(({ replyTo }) => replyTo);
    expect(inboxes(await test.release(holder.acquireId))).toEqual(['inbox.any']);
    expect(inboxes(await test.server('b', 1))).toEqual(['inbox.not on a']);
    await test.server('c', 1);
    expect(inboxes(await servers.update(test.pool, { serverId: 'c', labels: { zone: 'z' } }))).toEqual([
      'inbox.labelled',
    ]);
  });

  it('of more than 128 kinds at once are refused a place in the queue', async () => {
    const wait = (n: number) =>
      acquire({ waitMs: 20_000, replyTo: `inbox.${n}`, labels: { kind: `k${n}` }, acquireId: `kind-${n}` });
    for (let n = 0; n < 128; n++) expect(await wait(n)).toMatchObject({ parked: true });
    expect(await wait(128)).toMatchObject({ error: 'QUEUE_FULL' });
    await test.release('kind-5');
    expect(await wait(129)).toMatchObject({ parked: true });
  });
});
