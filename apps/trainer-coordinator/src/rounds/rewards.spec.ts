import type { GroupRewards, TailPolicy } from '@broomwagon/contracts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CoordinatorFixture, type FixtureWorker, groups, openRequest } from '../coordinator.fixture';

const EQUAL = [1, 1];
const DIFFERENT = [0, 1];

describe('rewards that are equal', () => {
  let fixture: CoordinatorFixture;
  let worker: FixtureWorker;
  const job = 'job';
  beforeAll(async () => {
    fixture = await CoordinatorFixture.start(1);
  });
  afterAll(() => fixture.stop());
  beforeEach(async () => {
    fixture.freshPool();
    worker = await fixture.worker('w');
  });

  async function open(policy: TailPolicy, needed: number, remaining: number) {
    const wanted = { groupsPerStep: needed, remainingGroups: remaining, policy };
    const plan = await fixture.call('round.next', { job, ...wanted });
    const opened = await fixture.call('round.open', openRequest(job, plan, policy));
    const round = { job, roundId: opened.roundId, trainerEpoch: opened.trainerEpoch };
    await fixture.call('round.submit', { ...round, groups: groups(plan.newGroups) });
    return round;
  }
  const status = () => fixture.call('round.status', { job });
  type Round = Awaited<ReturnType<typeof open>>;
  const rewardGroups = async (round: Round, given: GroupRewards[], remainingGroups?: number) => {
    const { outcomes } = await fixture.call('round.reward', { ...round, groups: given, remainingGroups });
    return outcomes.map(({ outcome }) => outcome);
  };
  const acceptedIds = async (round: Round) =>
    (await fixture.call('round.results', round)).groups.map(({ groupId }) => groupId);

  it('are replaced by other groups until the step has exactly its groups, and cursors stay valid', async () => {
    const policy: TailPolicy = { name: 'resume', overProvision: 1.5, equalRewards: 'replace' };
    const round = await open(policy, 2, 5);
    await worker.finishAll();
    // The round has two groups and a third that is held, and waits for rewards.
    expect(await status()).toMatchObject({ state: 'open', acceptedGroups: 2, heldGroups: 1, unrewardedGroups: 2 });
    const first = await fixture.call('round.results', round);
    const [a, b] = first.groups.map(({ groupId }) => groupId) as [string, string];
    const given = [
      { groupId: a, rewards: EQUAL },
      { groupId: b, rewards: DIFFERENT },
    ];
    expect(await rewardGroups(round, given, 2)).toEqual(['replaced', 'kept']);
    // A repeat, with other rewards too, gets the first outcomes.
    expect(await rewardGroups(round, [{ groupId: a, rewards: DIFFERENT }, given[1]!], 2)).toEqual(['replaced', 'kept']);
    // The held group has taken the place; the next group has to be submitted.
    expect(await status()).toMatchObject({ neededGroups: 3, newGroups: 3, acceptedGroups: 3, unrewardedGroups: 1 });
    const { groups: later, cursor } = await fixture.call('round.results', { ...round, cursor: first.cursor });
    const c = later[0]!.groupId;
    expect(await rewardGroups(round, [{ groupId: c, rewards: EQUAL }], 2)).toEqual(['replaced']);
    expect(await status()).toMatchObject({ state: 'open', neededGroups: 4, newGroups: 4, roundGroups: 3 });
    await expect(fixture.close(round)).rejects.toMatchObject({ code: 'ROUND_NOT_COMPLETED' });
    await fixture.call('round.submit', { ...round, groups: groups(1, 3) });
    await worker.finishAll();
    expect(await rewardGroups(round, [{ groupId: 'g3', rewards: DIFFERENT }], 1)).toEqual(['kept']);
    expect(await status()).toMatchObject({ state: 'completed', completedReason: 'accepted', replacedGroups: 2 });
    const rest = await fixture.call('round.results', { ...round, cursor });
    expect(rest).toMatchObject({ complete: true, ledger: { trained: { samples: 4 }, excluded: { groups: 2 } } });
    const all = await fixture.call('round.results', round);
    expect(all.groups.filter(({ excluded }) => excluded).map(({ groupId }) => groupId)).toEqual([a, c]);
    const closed = await fixture.call('round.close', { ...round, cursor: rest.cursor });
    expect(closed).toMatchObject({ stepsTrained: 1, trainedGroups: 2, trainedRequests: 4 });
    expect(await fixture.call('round.close', { ...round, cursor: rest.cursor })).toMatchObject({ trainedGroups: 2 });
    await fixture.swept();
    const after = await fixture.call('job.status', { job });
    expect(after).toMatchObject({ trainedGroups: 2, excludedGroups: 2, requests: { trained: 4, dropped: 4 } });
    const { summary } = await fixture.call('job.ledger', { job });
    expect(summary).toMatchObject({
      lengthBias: 1,
      excluded: { groups: 2, samples: 4 },
      waste: { byReason: { 'equal-rewards': 12 } },
    });
    // The job knows the replaced groups, so that no trainer submits them again.
    const known = { job, trainerEpoch: round.trainerEpoch, groupIds: [a, c, 'never'] };
    expect((await fixture.call('job.reconcile', known)).unknown).toEqual(['never']);
  });

  it('are trained when nothing can replace them, or as many as allowed are replaced', async () => {
    const policy: TailPolicy = { name: 'wait', overProvision: 1, equalRewards: 'replace', shortfall: 'accept-fewer' };
    const round = await open({ ...policy, maxReplacedGroups: 1 }, 2, 3);
    await worker.finishAll();
    const [a, b] = (await acceptedIds(round)) as [string, string];
    const rewards = [a, b].map((groupId) => ({ groupId, rewards: EQUAL }));
    expect(await rewardGroups(round, rewards, 5)).toEqual(['replaced', 'kept']);
    expect(await status()).toMatchObject({ state: 'open', newGroups: 3 });
    await fixture.call('round.submit', { ...round, groups: groups(1, 2) });
    await worker.finishAll();
    // The trainer has no other group to submit.
    expect(await rewardGroups(round, [{ groupId: 'g2', rewards: EQUAL }])).toEqual(['kept']);
    expect(await status()).toMatchObject({ state: 'completed', acceptedGroups: 3, excludedGroups: 1 });
    expect(await fixture.close(round)).toMatchObject({ trainedGroups: 2 });
  });

  it('may come with the close, and exclude their groups from a smaller step', async () => {
    const round = await open({ name: 'wait', overProvision: 1, equalRewards: 'exclude' }, 3, 3);
    await worker.finishAll();
    const { groups: read, cursor } = await fixture.call('round.results', round);
    const rewards = read.map(({ groupId }, position) => ({ groupId, rewards: position === 1 ? EQUAL : DIFFERENT }));
    const close = { ...round, cursor, rewards };
    expect(await fixture.call('round.close', close)).toMatchObject({ trainedGroups: 2, trainedRequests: 4 });
    expect(await fixture.call('round.close', close)).toMatchObject({ trainedGroups: 2, trainedRequests: 4 });
    await fixture.swept();
    const { summary } = await fixture.call('job.ledger', { job, roundId: round.roundId });
    expect(summary).toMatchObject({ trained: { samples: 4 }, excluded: { groups: 1, samples: 2 } });
  });

  it('change nothing by default, and never for a single sample', async () => {
    const kept = await open({ name: 'wait', overProvision: 1 }, 1, 1);
    await worker.finishAll();
    expect(await rewardGroups(kept, [{ groupId: 'g0', rewards: EQUAL }])).toEqual(['kept']);
    expect(await fixture.close(kept)).toMatchObject({ trainedGroups: 1 });
    await fixture.swept();
    const policy: TailPolicy = { name: 'wait', overProvision: 1, equalRewards: 'exclude' };
    const plan = await fixture.call('round.next', { job, groupsPerStep: 1, remainingGroups: 1, policy });
    const opened = await fixture.call(
      'round.open',
      openRequest(job, plan, policy, { trainerEpoch: kept.trainerEpoch }),
    );
    const single = { job, roundId: opened.roundId, trainerEpoch: opened.trainerEpoch };
    await fixture.call('round.submit', { ...single, groups: groups(1, 1, 1) });
    await worker.finishAll();
    expect(await rewardGroups(single, [{ groupId: 'g1', rewards: [1] }])).toEqual(['kept']);
    expect(await fixture.close(single)).toMatchObject({ trainedGroups: 1, trainedRequests: 1 });
  });

  it('are given up with a round that is cancelled', async () => {
    const round = await open({ name: 'wait', overProvision: 1, equalRewards: 'exclude' }, 2, 2);
    await worker.finishAll();
    expect(await rewardGroups(round, [{ groupId: 'g0', rewards: EQUAL }])).toEqual(['excluded']);
    expect(await status()).toMatchObject({ excludedGroups: 1, wastedByReason: { 'equal-rewards': 6 } });
    await fixture.call('round.cancel', { ...round, mode: 'requeue' });
    await fixture.swept();
    expect(await status()).toMatchObject({ excludedGroups: 0, wastedTokens: 0 });
    expect(await fixture.call('longtail.stats', { job })).toMatchObject({ groups: 2 });
    await expect(rewardGroups(round, [{ groupId: 'g0', rewards: EQUAL }])).rejects.toMatchObject({
      code: 'ROUND_CANCELLED',
    });
  });

  it('are refused as a whole when a group is unknown, or has another number of samples', async () => {
    const round = await open({ name: 'wait', overProvision: 1, equalRewards: 'exclude' }, 2, 2);
    await worker.finishAll();
    const good = { groupId: 'g0', rewards: EQUAL };
    const refused = (...given: GroupRewards[]) => expect(rewardGroups(round, [good, ...given])).rejects;
    await refused({ groupId: 'g7', rewards: EQUAL }).toMatchObject({
      code: 'GROUP_NOT_FOUND',
      field: 'groups.1.groupId',
    });
    await refused({ groupId: 'g1', rewards: [1] }).toMatchObject({
      code: 'VALIDATION_FAILED',
      field: 'groups.1.rewards',
    });
    await refused({ groupId: 'g1', rewards: ['1' as never, 2] }).toMatchObject({ code: 'VALIDATION_FAILED' });
    await refused(good).toMatchObject({ code: 'VALIDATION_FAILED', field: 'groups.1.groupId' });
    expect(await status()).toMatchObject({ excludedGroups: 0 });
    const { cursor } = await fixture.call('round.results', round);
    const close = fixture.call('round.close', { ...round, cursor, rewards: [{ groupId: 'g1', rewards: [1] }] });
    await expect(close).rejects.toMatchObject({ code: 'VALIDATION_FAILED', field: 'rewards.0.rewards' });
    await fixture.close(round);
    await expect(rewardGroups(round, [good])).rejects.toMatchObject({ code: 'ROUND_CLOSED' });
  });
});
