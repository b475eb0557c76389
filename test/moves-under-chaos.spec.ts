import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { isBroomwagonError, buildRequestId, type MoveState } from '@broomwagon/contracts';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { decode } from '../lab/engine-simulator/src/zoo/zoo-run';
import { killAtRandom, createRandom } from './system/chaos';
import { dataSet, findFaults } from './system/data-set';
import { TestSystem } from './system/test-system';
import { changeBehaviours } from './system/zoo-chaos';

const PROMPTS = dataSet(16, 4);
const ENGINES = 3;

describe('requests moved at random while rounds are cut, processes killed and engines behave as in the wild', () => {
  let system: TestSystem;
  beforeAll(async () => {
    system = await TestSystem.start({ coordinators: 2, engines: ENGINES, prompts: PROMPTS, speed: 80 });
    await system.call('rebalance.configure', { maxMovesPerRequest: 1_000 });
  });
  afterEach(() => system.expectAtRest());
  afterAll(() => system?.stop());

  it('makes the tokens of an undisturbed run, each sample once', async () => {
    const mover = moveAtRandom(system, 'job');
    const chaos = killAtRandom(system, ['worker-1', 'worker-2', 'trainer-coordinator-1'], 7);
    const behaviours = changeBehaviours(system.engineUrls, 'vllm', { seed: inject('seed') });
    let trained;
    let pairs = 0;
    try {
      trained = await system.train('job', PROMPTS, { groupsPerStep: 4, policy: 'resume' });
    } finally {
      await chaos.stop();
      await mover.stop();
      pairs = await behaviours.stop();
    }
    expect(findFaults('job', PROMPTS, trained.lines)).toEqual([]);
    for (const { text, tokenIds } of trained.lines) expect(text).toBe(decode(tokenIds!));
    expect(pairs).toBeGreaterThan(2);
    const segments = trained.lines.map((line) => new Set(line.segments.map(({ serverId }) => serverId)).size);
    expect(Math.max(...segments), 'servers of one sample').toBeGreaterThan(1);
    expect(mover.states.get('moved')).toBeGreaterThan(10);
    // No move of these plans stays unfinished.
    for (const planId of mover.planIds.slice(-20)) {
      await expect
        .poll(async () => (await system.call('rebalance.status', { planId })).states)
        .not.toHaveProperty('sent');
    }
  });
});

/** Executes plans of random moves until it is stopped. Most moves are refused, since they ignore where requests run. */
function moveAtRandom(system: TestSystem, job: string) {
  const stopping = new AbortController();
  const states = new Map<MoveState, number>();
  const planIds: string[] = [];
  const random = createRandom(inject('seed'));
  const pick = (count: number): number => Math.floor(random() * count);
  const work = (async () => {
    while (!stopping.signal.aborted) {
      const drawn = Array.from({ length: 24 }, () => buildRequestId(job, PROMPTS[pick(PROMPTS.length)]!.id, pick(4)));
      const moves = [...new Set(drawn)].map((requestId) => ({ requestId, targetServerId: `engine-${pick(ENGINES)}` }));
      const planId = randomUUID();
      try {
        await system.call('rebalance.execute', { planId, moves });
        planIds.push(planId);
      } catch (error) {
        if (!isBroomwagonError(error) || !error.retryable) throw error;
      }
      await delay(100, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  })();
  return {
    states,
    planIds,
    async stop(): Promise<void> {
      stopping.abort();
      await work;
      for (const planId of planIds) {
        for (const [state, count] of Object.entries((await system.call('rebalance.status', { planId })).states)) {
          states.set(state as MoveState, (states.get(state as MoveState) ?? 0) + count);
        }
      }
    },
  };
}
