import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { dataSet, faultsOf, type TestPrompt } from './system/data-set';
import { TestSystem } from './system/test-system';

const APP_OF: Record<string, string> = { coordinator: 'trainer-coordinator' };
/** Chance decides which replica gets a call, so a data set may pass without a visit to the failpoint. */
const MOST_DATA_SETS = 12;
/** Opening a long round of it takes two pages of 128 requests. */
const WIDE = dataSet(12, 48, 29);
const SMALL = WIDE.map((prompt) => ({ ...prompt, samples: 4 }));
const GROUPS_PER_STEP = 4;

/** Every name given to `failpoint()` in the applications. */
function failpointNames(): string[] {
  const files = readdirSync('apps', { recursive: true, encoding: 'utf8' }).filter((file) =>
    /(?<!spec)\.ts$/.test(file),
  );
  const calls = files.flatMap((file) => [
    ...readFileSync(join('apps', file), 'utf8').matchAll(/failpoint\('([^']+)'/g),
  ]);
  return [...new Set(calls.map(([, name]) => name!))].sort();
}

describe('a replica killed at a named place, another one beside it', () => {
  let system: TestSystem;
  let dataSets = 0;
  beforeAll(async () => {
    system = await TestSystem.start({ workers: 1, prompts: WIDE, environment: { CONCURRENCY: '400' } });
  });
  afterEach(() => system.expectAtRest());
  afterAll(() => system?.stop());

  async function trainWhole(prompts: readonly TestPrompt[]): Promise<void> {
    const job = `job-${++dataSets}`;
    const { lines, steps } = await system.train(job, prompts, { groupsPerStep: GROUPS_PER_STEP, policy: 'resume' });
    expect(faultsOf(job, prompts, lines)).toEqual([]);
    expect(steps).toHaveLength(Math.ceil(prompts.length / GROUPS_PER_STEP));
  }

  /** What a data set alone never asks for; it changes nothing of the data set. */
  function provoke(name: string): Promise<unknown> {
    const calls = Array.from({ length: 24 }, (_, index) => `${name}-${dataSets}-${index}`);
    if (name.startsWith('coordinator.abort')) {
      return Promise.all(
        calls.map((abortId) => system.call('request.abort', { abortId, requestIds: [`nobody/${abortId}/0`] })),
      );
    }
    if (name.startsWith('coordinator.move')) {
      const moves = [{ requestId: 'nobody/g/0', targetServerId: 'engine-0' }];
      return Promise.all(calls.map((planId) => system.call('rebalance.execute', { planId, moves })));
    }
    if (name.startsWith('coordinator.weights')) return changeWeights(calls.slice(0, 8));
    if (name.startsWith('coordinator.requeue')) return handInUnknown(calls);
    if (name.startsWith('coordinator.open')) return Promise.all(calls.slice(0, 8).map((job) => openInPages(job)));
    if (/^coordinator\.(give-back|checkpoint|restore|unlink)\./.test(name)) {
      return Promise.all(calls.slice(0, 8).map((job) => saveAndFallBack(job)));
    }
    if (name.startsWith('load-balancer.sweep')) return Promise.all(calls.slice(0, 8).map((id) => leaveLeaseBehind(id)));
    if (name.startsWith('load-balancer.configure')) {
      return Promise.all(calls.map(() => system.call('pool.configure', {})));
    }
    return Promise.resolve();
  }

  /** To the version that the engines have: what runs is stopped, and goes on. */
  async function changeWeights(calls: readonly string[]): Promise<void> {
    for (const syncId of calls) {
      await system.call('weights.begin', { syncId, version: 0, mode: 'abort', waitMs: 5_000 });
      await system.call('weights.commit', { syncId });
    }
  }

  /** A job of its own, of which nothing runs: its groups, two pages of them, are given up and taken again. */
  async function openInPages(job: string): Promise<void> {
    await system.call('job.configure', { job, quota: { maxInFlight: 0 } });
    const groups = Array.from({ length: 4 }, (_, index) => ({
      groupId: `${job}-g${index}`,
      samples: 64,
      maxTokens: 1,
      prompt: SMALL[0]!.prompt,
    }));
    const policy = { name: 'resume', overProvision: 1 } as const;
    const { roundId, trainerEpoch } = await system.openRound(job, { groupsPerStep: 4, groups, policy });
    await system.call('round.cancel', { job, roundId, trainerEpoch, mode: 'requeue' });
    await expect.poll(async () => (await system.call('longtail.stats', { job })).groups).toBe(4);
    const plan = await system.call('round.next', { job, groupsPerStep: 4, remainingGroups: 0, policy });
    const open = { ...plan, job, roundId: 'again', kind: 'long' as const, policy, weightVersion: 0, trainerEpoch };
    expect(await system.call('round.open', open)).toMatchObject({ state: 'open', takenGroups: 4 });
    await system.call('round.cancel', { job, roundId: 'again', trainerEpoch, mode: 'drop' });
  }

  /** What a worker leaves behind is what the load-balancer sweeps. */
  async function leaveLeaseBehind(workerId: string): Promise<void> {
    const registration = { workerId, registrationId: workerId, ttlMs: 60_000 };
    const { workerEpoch } = await system.call('worker.register', registration);
    const held = { acquireId: workerId, requestId: `nobody/${workerId}/0`, workerId, workerEpoch };
    await system.call('lb.acquire', { ...held, waitMs: 10_000 });
    await system.call('worker.deregister', { workerId, workerEpoch });
  }

  async function handInUnknown(calls: readonly string[]): Promise<void> {
    const identity = { workerId: 'aside', registrationId: calls[0]!, ttlMs: 60_000 };
    const { workerId, workerEpoch } = { ...identity, ...(await system.call('worker.register', identity)) };
    const requests = [{ requestId: 'nobody/g/0', attempt: 1 }];
    await Promise.all(
      calls.map(() => system.call('longtail.requeue', { job: 'nobody', workerId, workerEpoch, requests })),
    );
    await system.call('worker.deregister', { workerId, workerEpoch });
  }

  /** A job of its own: its round is given up, then it is saved three times, which retires one, and falls back. */
  async function saveAndFallBack(job: string): Promise<void> {
    const wish = { job, policy: { name: 'resume', overProvision: 1 } as const };
    const plan = await system.call('round.next', { ...wish, groupsPerStep: 1, remainingGroups: 1 });
    const roundId = 'round';
    const round = { ...plan, ...wish, roundId, kind: 'short' as const, weightVersion: 0 };
    const { trainerEpoch } = await system.call('round.open', round);
    await system.call('round.cancel', { job, roundId, trainerEpoch, mode: 'requeue' });
    for (const tag of ['a', 'b', 'c']) await system.call('job.checkpoint', { job, trainerEpoch, tag });
    expect(await system.call('job.restore', { job, trainerEpoch, tag: 'b' })).toMatchObject({ state: 'restored' });
    const { checkpoints } = await system.call('job.checkpoints', { job });
    expect(checkpoints.map(({ tag }) => tag)).toEqual(['b']);
  }

  it.each(failpointNames())('loses nothing and does nothing twice: %s', async (name) => {
    const prefix = name.split('.')[0]!;
    const app = APP_OF[prefix] ?? prefix;
    // Pages are few; all else happens often, and the first time is not yet under load.
    const atHit = name.endsWith('between-pages') ? 1 : 3;
    const prompts = name.startsWith('coordinator.open') ? WIDE : SMALL;
    const victim = await system.startApp(app, `${app}-failing`, { FAILPOINTS: `${name}=kill@${atHit}` });
    try {
      for (let tries = 0; victim.running && tries < MOST_DATA_SETS; tries += 1) {
        await Promise.all([trainWhole(prompts), provoke(name)]);
      }
      expect(victim.lastExit).toEqual({ code: null, signal: 'SIGKILL' });
    } finally {
      await victim.stop();
    }
  });
});
