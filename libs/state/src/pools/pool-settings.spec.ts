import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { POOL_SETTING_DEFAULTS } from '@broomwagon/contracts';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { openTestStore, openTestWorker, type TestStore } from '../routing/routing-store.fixture';

let test: TestStore;
let worker: Awaited<ReturnType<typeof openTestWorker>>;
beforeEach(async () => {
  test = openTestStore();
  worker = await openTestWorker(test);
});
afterEach(() => test.close());

describe('settings of a pool', () => {
  it('change as a whole, are kept with a version that grows with each change, and a repeat changes nothing', async () => {
    expect(await test.pools.settings(test.pool)).toMatchObject({ version: 0, settings: {}, policy: 'least-inflight' });
    const first = await test.configure({ policy: 'round-robin', affinityBreakMargin: 2, groupSpreadAboveKvUse: 0.5 });
    expect(first).toMatchObject({ version: 1, policy: 'round-robin', isScored: true });
    expect(first.settings).toEqual({ policy: 'round-robin', affinityBreakMargin: 2, groupSpreadAboveKvUse: 0.5 });
    expect((await test.configure({ affinityBreakMargin: 2 })).version).toBe(1);
    const second = await test.configure({ affinityBreakMargin: 0 }, ['policy', 'groupSpreadAboveKvUse']);
    expect(second).toMatchObject({ version: 2, policy: 'least-inflight' });
    expect(second.settings).toMatchObject({ affinityBreakMargin: 0 });
    expect((await worker.acquire()).error).toBe('NO_SERVER_AVAILABLE');
  });

  it('are refused for another version without any change, but settings already in force are not refused', async () => {
    const change = (maxSessions: number) =>
      test.pools.configure(test.pool, { maxSessions, policy: 'consistent-hash' }, ['slowStartMs'], 0);
    await test.configure({ slowStartMs: 5 });
    const before = await test.redis.hgetall(`${test.root}:settings`);
    await expect(change(7)).rejects.toMatchObject({ code: 'VERSION_MISMATCH', field: 'ifVersion' });
    expect(await test.redis.hgetall(`${test.root}:settings`)).toEqual(before);
    const repeat = await test.pools.configure(test.pool, { slowStartMs: 5 }, [], 0);
    expect(repeat).toMatchObject({ version: 1, settings: { slowStartMs: 5 } });
  });

  it('take `never` for the margin, which is the default: a session stays whatever the load', async () => {
    await test.server('a', 9);
    await test.server('b', 9);
    await test.configure({ affinityBreakMargin: 0 });
    const off = await test.configure({ affinityBreakMargin: 'never' });
    expect(off).toMatchObject({ version: 2, settings: { affinityBreakMargin: 'never' } });
    expect(await test.configure({ affinityBreakMargin: 'never' })).toMatchObject({ version: 2 });
    const branches = [];
    for (let turn = 0; turn < 4; turn++) branches.push((await worker.acquire({ sessionId: 's' })).branch);
    expect(branches).toEqual([expect.any(String), 'sticky-hit', 'sticky-hit', 'sticky-hit']);
    expect(await test.configure({}, ['affinityBreakMargin'])).toMatchObject({ version: 3, settings: {} });
    await test.configure({ affinityBreakMargin: 0 });
    expect((await worker.acquire({ sessionId: 's' })).branch).toBe('sticky-broken');
  });

  it('let the policy in force decide until all of 300 servers are scored for the other, then that one at once', async () => {
    await Promise.all(Array.from({ length: 300 }, (_, n) => test.server(`server-${n}`)));
    await worker.acquirePlaces(3);
    const { revision, nextPolicy } = await test.pools.configure(test.pool, { policy: 'round-robin' });
    expect(nextPolicy).toBe('round-robin');
    let { cursor } = await test.servers.rescore(test.pool, {});
    expect(cursor).toBeDefined();
    expect(await worker.acquire()).toMatchObject({ policy: 'least-inflight', branch: 'tie', key: 0 });
    // The settings change again meanwhile, so this pass does not put the policy in force.
    await test.pools.configure(test.pool, { affinityBreakMargin: 5 });
    while (cursor !== undefined) ({ cursor } = await test.servers.rescore(test.pool, { cursor }));
    expect(await test.pools.finish(test.pool, revision)).toMatchObject({ nextPolicy: 'round-robin', isScored: false });
    expect(await test.configure({})).toMatchObject({ policy: 'round-robin', version: 2 });
    expect(await worker.acquire()).toMatchObject({ policy: 'round-robin', branch: 'round-robin', eligible: 300 });
    expect(await test.redis.exists(`${test.root}:eligible:next`)).toBe(0);
  });

  it('have the defaults that the scripts use where a setting is not set', () => {
    const folder = join(__dirname, '..');
    const scripts = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.lua'));
    const used: Record<string, unknown> = {};
    for (const script of scripts) {
      const text = readFileSync(join(folder, script), 'utf8');
      for (const [, name, value] of text.matchAll(/'(\w+)'\)\)?\s+or\s+([\w.]+)/g)) {
        const constants = new RegExp(`local ([\\w, ]*\\b${value}\\b[\\w, ]*) = ([\\d., ]+)`).exec(text);
        const at = constants?.[1]!.split(', ').indexOf(value!) ?? 0;
        const found = Number(constants?.[2]!.split(', ')[at] ?? value);
        if (Object.hasOwn(POOL_SETTING_DEFAULTS, name!) && Number.isFinite(found)) used[name!] = found;
      }
    }
    expect(Object.keys(used).length).toBeGreaterThan(9);
    expect(POOL_SETTING_DEFAULTS).toMatchObject(used);
  });
});
