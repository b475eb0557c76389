import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { isBroomwagonError, buildRequestId, type MoveState } from '@broomwagon/contracts';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { findSampleFaults } from '../lab/engine-simulator/src/zoo/sample-faults';
import { getStanding } from '../lab/engine-simulator/src/zoo/zoo-sets';
import { killAtRandom, createRandom } from './system/chaos';
import { dataSet, trueSample } from './system/data-set';
import { TestSystem } from './system/test-system';
import { changeBehaviours } from './system/zoo-chaos';

const PROMPTS = dataSet(16, 4);
const ENGINES = 3;
/** Stop text that ends about every third long sample, and no other sample. */
const STOP = '77 t77';

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
    const behaviours = changeBehaviours(system.engineUrls, 'vllm', {
      seed: inject('seed'),
      always: getStanding('vllm'),
    });
    let trained;
    let pairs = 0;
    try {
      trained = await system.train('job', PROMPTS, { groupsPerStep: 4, policy: 'resume', sampling: { stop: [STOP] } });
    } finally {
      await chaos.stop();
      await mover.stop();
      pairs = await behaviours.stop();
    }
    const names = trained.lines.map(({ promptId, sampleIndex }) => `${promptId}/${sampleIndex}`);
    expect(names.toSorted()).toEqual(
      PROMPTS.flatMap(({ id }) => [0, 1, 2, 3].map((index) => `${id}/${index}`)).toSorted(),
    );
    for (const line of trained.lines) {
      const prompt = PROMPTS.find(({ id }) => id === line.promptId)!;
      const truth = { ...trueSample('job', prompt, line.sampleIndex), logprobs: undefined, stop: STOP };
      expect(findSampleFaults(line, truth), `${line.promptId}/${line.sampleIndex}`).toEqual([]);
    }
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
