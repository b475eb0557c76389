import type { TailPolicy } from '@broomwagon/contracts';
import { afterAll, afterEach, beforeAll, describe, expect, inject, it } from 'vitest';
import { TAIL_RULES } from '../libs/policies/src/tail/tail-rules';
import { killAtRandom } from './system/chaos';
import { dataSet, findFaults } from './system/data-set';
import { hasAllQueued, placeFaults, watchQueue } from './system/step-places';
import { TestSystem } from './system/test-system';

const GROUPS_PER_STEP = 8;
const PROMPTS = dataSet(28, 4);
/** Groups of one sample, as PPO has them. In the job `single` two of the first twelve are long. */
const SINGLES = PROMPTS.slice(0, 16).map((prompt) => ({ ...prompt, samples: 1 }));
interface TestedPolicy {
  name: string;
  tail: Pick<TailPolicy, 'name'> & Partial<TailPolicy>;
  /** Default: {@link PROMPTS}. */
  prompts?: typeof PROMPTS;
}

const QUOTAS = { math: 3, code: 3 };

const RESUME: TestedPolicy['tail'] = {
  name: 'resume',
  overProvisionMode: 'adaptive',
  dispatchOrder: 'probe-first',
};

/** Policies that `npm run test:faults` adds: other adaptive choices, dispatch orders, quotas and places together. */
const LONG_FORM: TestedPolicy[] = [
  { name: 'wait', tail: { name: 'wait' } },
  { name: 'resume', tail: RESUME },
  { name: 'fixed-concurrency', tail: { name: 'fixed-concurrency', concurrency: 24, domainQuotas: QUOTAS } },
  { name: 'drip-adaptive', tail: { name: 'drip', dripMode: 'adaptive', overProvisionMode: 'adaptive' } },
  { name: 'drip-fixed', tail: { name: 'drip', domainQuotas: QUOTAS } },
  { name: 'drip-competing', tail: { name: 'drip', dripReserved: false, domainQuotas: QUOTAS } },
  { name: 'drip-longest', tail: { name: 'drip', dripReserved: true, dispatchOrder: 'longest-first', maxCuts: 1 } },
  { name: 'resume-quotas', tail: { name: 'resume', domainQuotas: QUOTAS, maxAgeSteps: 2 } },
  {
    name: 'fixed-concurrency-probing',
    tail: { name: 'fixed-concurrency', concurrency: 8, overProvisionMode: 'adaptive', dispatchOrder: 'probe-first' },
  },
];

const POLICIES: TestedPolicy[] = [
  { name: 'regenerate', tail: { name: 'regenerate', dispatchOrder: 'longest-first' } },
  { name: 'single', tail: RESUME, prompts: SINGLES },
  { name: 'drip', tail: { name: 'drip', dripMode: 'adaptive', domainQuotas: QUOTAS } },
  { name: 'auto', tail: { name: 'auto', maxOffPolicyShare: 0.9 } },
  ...(inject('runsFactor') === 1 ? [] : LONG_FORM),
];

describe('a whole data set while processes are killed at random', () => {
  let system: TestSystem;
  let queued: ReturnType<typeof watchQueue>;
  beforeAll(async () => {
    system = await TestSystem.start({ balancers: 2, coordinators: 2, workers: 2, prompts: PROMPTS, speed: 80 });
    queued = watchQueue(system);
  });
  afterEach(() => system.expectAtRest());
  afterAll(() => system?.stop());

  it.each(POLICIES)('is trained exactly once, token by token: $name', async ({ name, tail, prompts = PROMPTS }) => {
    const policy = tail.name;
    const job = `job-${name}`;
    const seed = inject('seed');
    // Two at a time may be down, also both replicas of an application.
    const chaos = [1, 2].map((replica) => {
      const names = ['load-balancer', 'trainer-coordinator', 'worker'].map((app) => `${app}-${replica}`);
      return killAtRandom(system, names, seed + replica);
    });
    let kills = 0;
    let trained;
    try {
      trained = await system.train(job, prompts, { groupsPerStep: GROUPS_PER_STEP, policy, tail });
    } finally {
      for (const one of chaos) kills += await one.stop();
    }
    expect(findFaults(job, prompts, trained.lines), `seed ${seed}`).toEqual([]);
    expect(trained.steps).toHaveLength(Math.ceil(prompts.length / GROUPS_PER_STEP));
    const samples = prompts.length * prompts[0]!.samples;
    await expect
      .poll(() => system.call('job.status', { job }))
      .toMatchObject({ trainedGroups: prompts.length, requests: { submitted: samples, trained: samples } });
    const { summary } = await system.call('job.ledger', { job });
    // Every other policy keeps the tokens of a sample that it cuts.
    const waste = policy === 'regenerate' ? {} : { tokens: 0 };
    expect(summary).toMatchObject({ trained: { samples }, waste });
    await expect.poll(() => hasAllQueued(queued, trained.steps), { timeout: 20_000 }).toBe(true);
    const reserved = tail.name !== 'auto' && TAIL_RULES[tail.name].reservesTaken(tail);
    const rules = { quotas: tail.domainQuotas, reserved };
    expect(placeFaults(rules, prompts, trained.steps, trained.lines, queued), `seed ${seed}`).toEqual([]);
    // The number of kills depends on how fast the processes start again.
    expect(kills).toBeGreaterThan(0);
    // More groups are launched than a step needs, so the surplus is requeued. Whether it has tokens depends on speed.
    if (policy !== 'wait' && policy !== 'auto') expect(trained.steps[0]!.groupsRequeued).toBeGreaterThan(0);
  });
});
