import type { Claim, CloseRoundRequest, Epoch, RoundResultsReply, TailPolicy } from '@broomwagon/contracts';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CoordinatorFixture, groups } from '../coordinator.fixture';

describe('the ledger and the prompt memory', () => {
  let fixture: CoordinatorFixture;
  const job = 'job';

  beforeAll(async () => {
    fixture = await CoordinatorFixture.start(1);
  });
  afterAll(() => fixture.stop());
  beforeEach(() => fixture.freshPool());

  async function open(policy: TailPolicy, needed: number, remaining: number, trainerEpoch?: Epoch) {
    const opened = await fixture.open(job, { groupsPerStep: needed, remainingGroups: remaining, policy, trainerEpoch });
    return { job, roundId: opened.roundId, trainerEpoch: opened.trainerEpoch };
  }

  const listAcceptances = ({ groups: read }: RoundResultsReply) =>
    read.flatMap(({ samples }) => samples.map(({ acceptance }) => acceptance));

  it('returns the cost of each round with its results, and the cost of the job', async () => {
    const alarms = { offPolicyShare: 0.5, batchVariation: 0.45, truncatedShare: 0, wasteShare: 0.1 };
    const policy: TailPolicy = { name: 'resume', overProvision: 2, maxCuts: 1, alarms };
    const first = await open(policy, 1, 2);
    await fixture.call('round.submit', { ...first, groups: groups(2) });
    const worker = await fixture.worker('ledger');
    const [a, b, kept, cut] = (await worker.claim(4)) as [Claim, Claim, Claim, Claim];
    await worker.complete(kept, 7);
    await fixture.call('request.save', { ...worker.fence(cut), segment: fixture.buildSegment(cut, 5) });
    await worker.complete(a, 3);
    await worker.complete(b, 5);
    await fixture.call('request.fail', {
      ...worker.fence(cut),
      reason: 'aborted',
      retryable: true,
      segment: fixture.buildSegment(cut, 6),
    });
    const short = await fixture.call('round.results', first);
    expect(short.ledger).toMatchObject({
      trained: { samples: 2, meanTokens: 4, p99Tokens: 5, capShare: 0 },
      // Samples of 3, 5 and 7 tokens have ended; one is longer than 6.
      admitted: { samples: 4, meanTokens: (3 + 5 + 7 * 2) / 4 },
      offPolicyShare: 0,
      versionSpan: { max: 0 },
      waste: { tokens: 0 },
      cutsPerGroup: { max: 0 },
    });
    const biasesSoFar = async (...roundIds: string[]) => {
      const read = (roundId: string) => fixture.call('job.ledger', { job, roundId });
      return (await Promise.all(roundIds.map(read))).map((one) => one.lengthBiasSoFar);
    };
    expect((await fixture.call('job.ledger', { job, roundId: first.roundId })).summary).toEqual(short.ledger);
    // Trained: 3 and 5 tokens. All samples: 3, 5, 7, and another one longer than 6.
    const biasOfFirst = 4 / 5.5;
    expect(await biasesSoFar(first.roundId)).toEqual([biasOfFirst]);
    await fixture.close(first);
    await fixture.swept();
    expect((await fixture.call('job.ledger', { job })).summary.admitted).toEqual(short.ledger?.admitted);

    const second = await open(policy, 1, 0, first.trainerEpoch);
    const [again] = (await worker.claim(4)) as [Claim];
    await worker.complete(again, 4);
    const long = await fixture.call('round.results', second);
    // Acceptances come from the first round. Within a factor of sqrt(2) of 7: half of the trained samples, and 5 and 7
    // of the four started samples. No trained sample is near 10.
    expect(listAcceptances(short)).toEqual([undefined, undefined]);
    expect(listAcceptances(long)).toEqual([0.5 / 0.75, undefined]);
    expect(long.ledger).toMatchObject({
      trained: { samples: 2, meanTokens: 8.5 },
      offPolicyShare: 13 / 17,
      versionSpan: { mean: 1, max: 1 },
      cutsPerGroup: { mean: 1, max: 1 },
    });
    await fixture.close(second);
    await fixture.swept();
    const { summary, alarms: raised } = await fixture.call('job.ledger', { job });
    expect(summary).toMatchObject({
      trained: { samples: 4, meanTokens: 6.25 },
      admitted: { samples: 4, meanTokens: 6.25 },
      lengthBias: 1,
      offPolicyShare: 13 / 25,
    });
    // The second round trains only samples that the first one cut: 7 and 10 tokens, of a started sample of 10.
    expect(long.ledger?.lengthBias).toBeLessThan(0.9);
    expect(await biasesSoFar(first.roundId, second.roundId)).toEqual([biasOfFirst, 1]);
    // Steps of 4 and of 9 (8.5) tokens.
    expect(summary.batchVariation).toBeCloseTo(2.5 / 6.5, 6);
    expect(raised).toEqual([
      { bound: 'offPolicyShare', value: 13 / 25, limit: 0.5, state: 'over' },
      { bound: 'batchVariation', value: summary.batchVariation, limit: 0.45, state: 'near' },
      { bound: 'cutsPerGroup', value: 1, limit: 1, state: 'near' },
    ]);
  });

  it('counts discarded tokens by reason, as lengths that were not seen to their end, and raises alarms', async () => {
    const alarms = { wasteShare: 0.5, truncatedShare: 0.6 };
    const round = await open({ name: 'regenerate', overProvision: 2, alarms }, 1, 2);
    await fixture.call('round.submit', { ...round, groups: groups(2) });
    const worker = await fixture.worker('waste');
    const [a, b, done, running] = (await worker.claim(4)) as [Claim, Claim, Claim, Claim];
    await worker.complete(done, 7);
    await worker.complete(a, 3);
    await worker.complete(b, 3, 'length');
    await worker.complete(running, 4);
    await expect.poll(async () => (await fixture.call('round.status', { job })).settled).toBe(true);
    const { summary } = await fixture.call('job.ledger', { job, roundId: round.roundId });
    expect(summary.waste).toEqual({ tokens: 11, share: 11 / 17, byReason: { cut: 4, unaccepted: 7 } });
    expect(summary.admitted.meanTokens).toBe((3 + 3 + 7 * 2) / 4);
    expect(summary.lengthBias).toBeCloseTo(3 / 5, 6);
    expect((await fixture.call('job.ledger', { job })).alarms).toEqual([
      // The trainer has set no bound: the default holds.
      { bound: 'lengthBias', value: 1 - summary.lengthBias, limit: 0.05, state: 'over' },
      { bound: 'truncatedShare', value: 0.5, limit: 0.6, state: 'near' },
      { bound: 'wasteShare', value: 11 / 17, limit: 0.5, state: 'over' },
    ]);
    const shown = (bound: string) => fixture.metric('broomwagon_ledger_alarms', `bound="${bound}"`);
    await expect.poll(() => shown('wasteShare'), { timeout: 20_000 }).toBe(2);
    expect(await Promise.all(['lengthBias', 'truncatedShare', 'versionSpan'].map(shown))).toEqual([2, 1, 0]);
  });

  it('counts nothing as trained of a round that is cancelled after its results were read, nor of steps that are undone', async () => {
    const policy: TailPolicy = { name: 'wait', overProvision: 1 };
    const worker = await fixture.worker('undone');
    const train = async (step: number, trainerEpoch?: Epoch) => {
      const round = await open(policy, 1, 1, trainerEpoch);
      await fixture.call('round.submit', { ...round, groups: groups(1, step) });
      await worker.finishAll();
      expect((await fixture.call('round.results', round)).ledger?.trained.samples).toBe(2);
      return round;
    };
    const first = await train(0);
    await fixture.call('round.cancel', { ...first, mode: 'requeue' });
    await fixture.swept();
    const trained = async () => (await fixture.call('job.ledger', { job })).summary.trained.samples;
    expect(await trained()).toBe(0);

    // Repeats the step and the roundId after a fallback: the first try has left nothing.
    const { trainerEpoch } = first;
    await expect
      .poll(async () => (await fixture.call('job.snapshot', { job, trainerEpoch, tag: 'before' })).state)
      .toBe('complete');
    const second = await fixture.open(job, {
      groupsPerStep: 1,
      remainingGroups: 0,
      policy,
      trainerEpoch,
      roundId: 'again',
    });
    const round = { job, roundId: 'again', trainerEpoch: second.trainerEpoch };
    await fixture.call('round.results', round);
    await fixture.close(round);
    await fixture.swept();
    expect(await trained()).toBe(2);
    const restored = await fixture.call('job.restore', { job, trainerEpoch, tag: 'before' });
    expect(await trained()).toBe(0);
    const third = await fixture.open(job, {
      groupsPerStep: 1,
      remainingGroups: 0,
      policy,
      trainerEpoch: restored.trainerEpoch,
      roundId: 'again',
    });
    const last = { job, roundId: 'again', trainerEpoch: third.trainerEpoch };
    expect((await fixture.call('round.results', last)).ledger?.trained.samples).toBe(2);
    await fixture.close(last);
    await fixture.swept();
    expect(await trained()).toBe(2);
  });

  it('returns the cost of all jobs of the pool, each counted once whatever is repeated', async () => {
    const policy: TailPolicy = { name: 'resume', overProvision: 2 };
    const worker = await fixture.worker('pool');
    expect(await fixture.call('pool.ledger', {})).toMatchObject({ jobs: 0, summary: { lengthBias: 1 } });
    const train = async (name: string, lengths: readonly number[]) => {
      const opened = await fixture.open(name, { groupsPerStep: 1, remainingGroups: 2, policy });
      const round = { job: name, roundId: opened.roundId, trainerEpoch: opened.trainerEpoch };
      await fixture.call('round.submit', { ...round, groups: groups(2) });
      const claims = await worker.claim(4);
      await worker.complete(claims[0]!, lengths[0]);
      await worker.complete(claims[1]!, lengths[1]);
      for (const claim of claims.slice(2)) {
        const segment = fixture.buildSegment(claim, 8);
        await fixture.call('request.fail', { ...worker.fence(claim), reason: 'aborted', retryable: true, segment });
      }
      return round;
    };
    const expected = {
      jobs: 2,
      summary: {
        trained: { samples: 4, meanTokens: 6 },
        // Samples of 4, 4, 8 and 8 tokens have ended; two samples of each job are longer than 8.
        admitted: { samples: 8, meanTokens: (4 * 2 + 8 * 6) / 8 },
        lengthBias: 6 / 7,
        waste: { tokens: 0 },
      },
    };
    const read = () => fixture.call('pool.ledger', {});
    const rounds = [await train('one', [4, 4]), await train('other', [8, 8])];
    // The counts are the same whatever step a process dies after.
    const closes: CloseRoundRequest[] = [];
    for (const round of [...rounds, ...rounds]) {
      closes.push({ ...round, cursor: (await fixture.call('round.results', round)).cursor! });
    }
    expect(await read()).toMatchObject(expected);
    for (const close of closes) await fixture.call('round.close', close);
    expect(await read()).toMatchObject(expected);
    await fixture.swept();
    for (const close of closes) await fixture.call('round.close', close);
    await fixture.swept();
    const folded = await read();
    expect(folded).toMatchObject(expected);
    // Steps of 4 and of 8 tokens.
    expect(folded.summary.batchVariation).toBeCloseTo(2 / 6, 6);

    const deleted = async () => (await fixture.call('job.delete', { job: 'other', force: true })).state;
    await expect.poll(deleted).toBe('deleted');
    expect(await read()).toMatchObject({ jobs: 1, summary: { trained: { samples: 2, meanTokens: 4 } } });
  });

  it('refuses an unknown job or round', async () => {
    await expect(fixture.call('job.ledger', { job: 'none' })).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' });
    await open({ name: 'wait', overProvision: 1 }, 1, 1);
    await expect(fixture.call('job.ledger', { job, roundId: 'none' })).rejects.toMatchObject({
      code: 'ROUND_NOT_FOUND',
    });
  });

  it('remembers the trained lengths of each prompt, and the lengths of prompt.remember', async () => {
    const round = await open({ name: 'wait', overProvision: 1 }, 1, 1);
    const [group] = groups(1);
    await fixture.call('round.submit', { ...round, groups: [{ ...group!, promptId: 'p/1' }] });
    await (await fixture.worker('memory')).finishAll();
    await fixture.close(round);
    await fixture.swept();
    const told = { promptId: 'p/2', lengths: [100, 100], atCap: true };
    expect(await fixture.call('prompt.remember', { prompts: [told] })).toEqual({ remembered: 1 });
    const { prompts } = await fixture.call('prompt.lengths', { promptIds: ['p/1', 'p/2', 'p/3'] });
    expect(prompts).toMatchObject([
      { promptId: 'p/1', samples: 2, medianTokens: 3, capShare: 0 },
      { promptId: 'p/2', samples: 2, medianTokens: 100, capShare: 1 },
    ]);
  });

  it('grants the longest prompts first, and probes unknown ones, if the policy asks for it', async () => {
    const prompts = [10, 80, 40].map((tokens, index) => ({ promptId: `g${index}`, lengths: [64 * tokens] }));
    await fixture.call('prompt.remember', { prompts });
    const worker = await fixture.worker('order');
    const order = async (claims: Promise<Claim[]>) =>
      (await claims).map(({ groupId, sampleIndex }) => `${groupId}.${sampleIndex}`);
    const submitted = groups(4).map((group) => ({ ...group, maxTokens: 6_400, promptId: group.groupId }));

    const longest = await open({ name: 'wait', overProvision: 1, dispatchOrder: 'longest-first' }, 4, 4);
    await fixture.call('round.submit', { ...longest, groups: submitted });
    // g3 is unknown and counts as its whole budget.
    expect(await order(worker.claim(8))).toEqual(['g3.0', 'g3.1', 'g1.0', 'g1.1', 'g2.0', 'g2.1', 'g0.0', 'g0.1']);

    fixture.freshPool();
    await fixture.call('prompt.remember', { prompts });
    const prober = await fixture.worker('prober');
    const probe = await open({ name: 'wait', overProvision: 1, dispatchOrder: 'probe-first' }, 4, 4);
    await fixture.call('round.submit', { ...probe, groups: submitted });
    const [first] = await prober.claim(1);
    expect(first).toMatchObject({ groupId: 'g3', sampleIndex: 0 });
    await prober.complete(first!, 64 * 20);
    expect(await order(prober.claim(8))).toEqual(['g1.0', 'g1.1', 'g2.0', 'g2.1', 'g3.1', 'g0.0', 'g0.1']);
  });
});
