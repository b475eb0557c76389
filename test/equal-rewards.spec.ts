import type { GroupId, RewardOutcome, TailPolicy } from '@broomwagon/contracts';
import { afterAll, afterEach, beforeAll, expect, inject, it } from 'vitest';
import { GroupSubmitter } from '../lab/reference-trainer/src/loop/group-submitter';
import { Operations } from '../lab/reference-trainer/src/loop/operations';
import { ResultsReader } from '../lab/reference-trainer/src/loop/results-reader';
import type { ResultLine } from '../lab/reference-trainer/src/results/result-line';
import { killAtRandom } from './system/chaos';
import { dataSet, findFaults, SEED, type TestPrompt } from './system/data-set';
import { TestSystem } from './system/test-system';

const GROUPS_PER_STEP = 6;
const PROMPTS = dataSet(28, 4);
/** Whether all samples of a prompt get the same reward, as with a prompt that is too easy. */
const isEqual = ({ line }: TestPrompt) => line % 3 === 1;
const buildRewards = (prompt: TestPrompt) =>
  Array.from({ length: prompt.samples }, (_, index) => (isEqual(prompt) ? 1 : index % 2));
const POLICIES: TailPolicy[] = [
  { name: 'resume', overProvision: 1.5, equalRewards: 'replace' },
  { name: 'drip', overProvision: 1.5, dripReserved: true, equalRewards: 'replace' },
];

let system: TestSystem;
beforeAll(async () => {
  system = await TestSystem.start({ balancers: 2, coordinators: 2, workers: 2, prompts: PROMPTS, speed: 80 });
});
afterEach(() => system.expectAtRest());
afterAll(() => system?.stop());

/** A trainer that reports the rewards of each group as soon as it has read it. */
class RewardingTrainer {
  readonly outcomes = new Map<GroupId, RewardOutcome>();
  /** Results of groups with any outcome. */
  readonly lines: ResultLine[] = [];
  private left = [...PROMPTS];
  private readonly operations = new Operations(system.client, system.pool, { deadlineMs: 30_000 });
  private readonly submitter: GroupSubmitter;

  constructor(private readonly job: string) {
    this.submitter = new GroupSubmitter(this.operations, job, {
      samples: PROMPTS[0]!.samples,
      maxTokens: 16_384,
      sampling: { seed: SEED },
    });
  }

  /** Returns how many groups each step needed and trained. */
  async train(policy: TailPolicy): Promise<{ needed: number; trained: number }[]> {
    const steps: { needed: number; trained: number }[] = [];
    let trainerEpoch: string | undefined;
    for (;;) {
      const { job } = this;
      const wanted = { job, groupsPerStep: GROUPS_PER_STEP, remainingGroups: this.left.length, policy };
      const { kind, ...plan } = await this.operations.call('round.next', { ...wanted, trainerEpoch });
      if (kind === 'done') return steps;
      const round = { job, roundId: `r${plan.step}` };
      const opening = { ...round, ...plan, kind, policy, trainerEpoch };
      ({ trainerEpoch } = await this.operations.call('round.open', opening));
      const trained = await this.drive({ ...round, trainerEpoch });
      steps.push({ needed: plan.neededGroups, trained });
    }
  }

  private async drive(round: { job: string; roundId: string; trainerEpoch: string }): Promise<number> {
    const { weightVersion } = await this.operations.call('round.status', round);
    const results = new ResultsReader(this.operations, this.job, { ...round, weightVersion });
    while (!results.complete) {
      const status = await this.operations.call('round.status', round);
      const missing = status.newGroups - (status.roundGroups - status.takenGroups);
      if (status.state === 'open') await this.submit(round, Math.max(missing, status.shortfallGroups));
      await results.readNew(round.trainerEpoch, 25);
      await this.reward(round, results.lines);
    }
    this.lines.push(...results.lines);
    const closed = await this.operations.call('round.close', { ...round, ...results.proof });
    return closed.trainedGroups;
  }

  private async submit({ roundId, trainerEpoch }: { roundId: string; trainerEpoch: string }, count: number) {
    const prompts = this.left.splice(0, count);
    if (prompts.length === 0 || (await this.submitter.submit(roundId, trainerEpoch, prompts))) return;
    const groupIds = prompts.map(({ id }) => id);
    const { unknown } = await this.operations.call('job.reconcile', { job: this.job, trainerEpoch, groupIds });
    this.left.unshift(...prompts.filter(({ id }) => unknown.includes(id)));
  }

  private async reward(round: { job: string; roundId: string; trainerEpoch: string }, lines: readonly ResultLine[]) {
    const read = new Set(lines.map(({ promptId }) => promptId));
    const groups = PROMPTS.filter(({ id }) => read.has(id) && !this.outcomes.has(id)).map((prompt) => ({
      groupId: prompt.id,
      rewards: buildRewards(prompt),
    }));
    if (groups.length === 0) return;
    const remainingGroups = this.left.length;
    const { outcomes } = await this.operations.call('round.reward', { ...round, groups, remainingGroups });
    for (const { groupId, outcome } of outcomes) this.outcomes.set(groupId, outcome);
  }
}

it.each(POLICIES)('equal rewards are replaced, all others trained once, while processes die: $name', async (policy) => {
  const job = `job-${policy.name}`;
  const seed = inject('seed');
  const trainer = new RewardingTrainer(job);
  const names = ['load-balancer', 'trainer-coordinator', 'worker'].flatMap((app) => [`${app}-1`, `${app}-2`]);
  const chaos = killAtRandom(system, names, seed);
  let kills = 0;
  let steps: { needed: number; trained: number }[] = [];
  try {
    steps = await trainer.train(policy);
  } finally {
    kills = await chaos.stop();
  }
  // Each prompt was rolled out once, token by token, and each step has exactly its groups.
  expect(findFaults(job, PROMPTS, trainer.lines), `seed ${seed}`).toEqual([]);
  expect(steps.map(({ trained }) => trained)).toEqual(steps.map(({ needed }) => needed));
  const replaced = PROMPTS.filter(({ id }) => trainer.outcomes.get(id) === 'replaced');
  expect(replaced.length).toBeGreaterThan(0);
  expect(replaced.filter((prompt) => !isEqual(prompt))).toEqual([]);
  const trained = PROMPTS.length - replaced.length;
  expect(steps.reduce((sum, step) => sum + step.trained, 0)).toBe(trained);
  await expect
    .poll(() => system.call('job.status', { job }))
    .toMatchObject({
      trainedGroups: trained,
      excludedGroups: replaced.length,
      requests: { trained: 4 * trained, dropped: 4 * replaced.length, finished: 0, pending: 0 },
    });
  expect(kills).toBeGreaterThan(0);
});
