import { type Claim, isBroomwagonError, type TailPolicy } from '@broomwagon/contracts';
import fc from 'fast-check';
import { afterAll, expect, inject, it } from 'vitest';
import { AbortStore, type AbortSelector } from '../aborts/abort.store';
import { PoolAudit } from '../audit';
import { SnapshotStore } from '../snapshots/snapshot.store';
import { LongtailStore } from '../longtail/longtail.store';
import { type Decide, decisions } from '../../../../lab/models/src/rounds/interleave.fixture';
import { TestPools } from '../rounds/test-pools.fixture';

/** Number of random jobs. */
const RUNS = 40 * inject('runsFactor');
/** Sweeps until a round must have ended. */
const MAX_TURNS = 40;
const JOB = 'job';

const test = new TestPools();
const { redis, rounds, workers, runner } = test;
const aborts = new AbortStore(runner);
const longtail = new LongtailStore(runner);
const snapshots = new SnapshotStore(runner);
const audit = new PoolAudit(redis, runner);
afterAll(() => test.close());

type Round = Awaited<ReturnType<TestPools['open']>>;

const policies = fc.record({
  name: fc.constantFrom('resume', 'regenerate', 'fixed-concurrency'),
  overProvision: fc.constantFrom(1, 2),
  sampleOverProvision: fc.constantFrom(1, 1.5),
  onCut: fc.constantFrom('keep', 'discard'),
  shortfall: fc.constantFrom('replace', 'accept-fewer'),
  maxCuts: fc.constantFrom(1, 4),
  domainQuotas: fc.constantFrom(undefined, { math: 1 }, { math: 2 }),
}) as fc.Arbitrary<unknown> as fc.Arbitrary<TailPolicy>;

/**
 * A job whose worker and trainer act in random order until keys of the job are lost. Then they finish their work.
 */
class World {
  private held: Claim[] = [];
  private abortIds = 0;
  private submitted = 0;

  constructor(
    private readonly policy: TailPolicy,
    private readonly minSamples: number,
    private readonly decide: Decide,
  ) {}

  private get pool() {
    return test.pool;
  }

  async open(step: number, takeGroups: number, trainerEpoch?: string): Promise<Round> {
    const concurrency = this.policy.name === 'fixed-concurrency' ? { concurrency: 2 } : {};
    const policy = { ...this.policy, ...concurrency } as TailPolicy;
    const { minSamples } = this;
    return test.open({ policy, neededGroups: 3, newGroups: 4, takeGroups, samples: 2, minSamples, step, trainerEpoch });
  }

  /** Does a random action of a worker, a trainer or an operator. */
  async act(round: Round): Promise<void> {
    const kind = this.decide(12);
    const claim = this.held[this.decide(Math.max(1, this.held.length))];
    if (kind < 3 || claim === undefined) this.held.push(...(await test.claim(1 + this.decide(3))));
    else if (kind < 5) await this.say(() => test.save(claim, 1 + this.decide(3)));
    else if (kind < 8) await this.end(claim, () => test.complete(claim));
    else if (kind < 9) await this.end(claim, () => test.fail(claim, this.decide(3)));
    else if (kind < 10) await this.end(claim, () => longtail.requeue(this.pool, { ...test.fence(claim), tokens: 0 }));
    else if (kind < 11) await this.abort(claim, round);
    else await this.complete();
  }

  /** Lets the deadline of the round pass. */
  private async complete(): Promise<void> {
    if (this.decide(3) === 0) {
      const { openRoundId } = await rounds.jobStatus(this.pool, { job: JOB });
      if (openRoundId) await redis.zadd(test.key('rounds:deadlines'), 1, `${JOB}/${openRoundId}`);
      await rounds.expire(this.pool);
    }
  }

  private async abort({ requestId, groupId }: Claim, { roundId }: Round): Promise<void> {
    const selector: AbortSelector[] = [
      { requestIds: [requestId], scope: 'sample' },
      { requestIds: [requestId] },
      { job: JOB, groupId },
      { workerId: test.holder.workerId },
      { job: JOB, roundId },
    ];
    const abortId = `a${this.abortIds++}`;
    const args = { selector: selector[this.decide(selector.length)]!, reason: 'test', keptMs: 60_000 };
    await aborts.begin(this.pool, { abortId, ...args });
    if (this.decide(2) === 0) await aborts.select(this.pool, { abortId });
  }

  private async end(claim: Claim, word: () => Promise<unknown>): Promise<void> {
    this.held = this.held.filter((one) => one !== claim);
    await this.say(word);
  }

  /** Sends a call about an attempt. Errors that a worker may get for an ended attempt are ignored. */
  private async say(word: () => Promise<unknown>): Promise<void> {
    await word().catch((error: unknown) => {
      if (!['FENCED', 'REQUEST_NOT_FOUND', 'ROUND_CLOSED'].some((code) => isBroomwagonError(error, code as 'FENCED')))
        throw error;
    });
  }

  /** Loses one or two keys, as a Redis that was set back. */
  async lose(): Promise<void> {
    const keys = await this.keys();
    const lost = Array.from({ length: 1 + this.decide(2) }, () => keys[this.decide(keys.length)]!);
    if (keys.length > 0) await redis.unlink(...lost);
  }

  /** Keys of all existing requests and groups. */
  private async keys(): Promise<string[]> {
    return [...(await redis.keys(test.key('request:*'))), ...(await redis.keys(test.key('group:*')))].sort();
  }

  /** Worker, trainer and sweep do their work until the round is trained and folded. */
  async finish(round: Round): Promise<void> {
    for (let turn = 0; turn < MAX_TURNS; turn++) {
      await this.sweep();
      const status = await rounds.status(this.pool, { job: JOB, roundId: round.roundId });
      if (status.state === 'closed') {
        if (await this.isAtRest()) return;
      } else if (status.state === 'completed') {
        await test.readAndClose(round);
      } else if (status.shortfallGroups > 0) {
        await rounds.submit(this.pool, round, [this.replacement()]);
      }
      this.held.push(...(await test.claim(8)));
      for (const claim of this.held) await this.end(claim, () => test.complete(claim));
      if (this.decide(4) === 0) await workers.sync(this.pool, { ...test.holder, kind: 'attempts' });
    }
    const status = await rounds.status(this.pool, { job: JOB, roundId: round.roundId });
    expect(status).toBe('closed and folded');
  }

  private replacement() {
    const groupId = `more${this.submitted++}`;
    const { minSamples } = this;
    return { groupId, digest: 'd', samples: 2, minSamples, maxTokens: 10, promptRef: groupId, sampling: '{}' };
  }

  private async isAtRest(): Promise<boolean> {
    const due = await rounds.due(this.pool);
    return due.rounds.length + due.aborting + due.leaving + due.miscounted.length === 0;
  }

  private async sweep(): Promise<void> {
    const due = await rounds.due(this.pool);
    for (const round of due.rounds) {
      for (let cursor: number | undefined = 0; cursor !== undefined;)
        ({ cursor } = await rounds.cut(this.pool, { ...round, cursor }));
      if (round.state === 'closed') await rounds.fold(this.pool, round);
    }
    for (let cursor: number | undefined = 0; cursor !== undefined;)
      ({ cursor } = await longtail.repeat(this.pool, { cursor }));
    for (const abortId of due.aborts)
      for (let more = true; more;) ({ more } = await aborts.select(this.pool, { abortId }));
    await aborts.repeat(this.pool, { deadlineMs: 60_000 });
    await audit.recount(this.pool, due.miscounted);
  }

  /** Saves, restores and empties the job, after which nothing of it may be left. */
  async endJob({ trainerEpoch }: Round): Promise<void> {
    const job = { job: JOB, trainerEpoch };
    for (let state = ''; state !== 'complete';) ({ state } = await snapshots.save(this.pool, { ...job, tag: 't' }));
    if (this.decide(2) === 0) await this.lose();
    let epoch = trainerEpoch;
    for (let state = ''; state !== 'restored';)
      ({ state, trainerEpoch: epoch } = await snapshots.restore(this.pool, { ...job, tag: 't' }));
    if (this.decide(2) === 0) await this.lose();
    for (let upTo: number | undefined = 0; upTo !== undefined;) {
      const wanted = { job: JOB, trainerEpoch: epoch, reason: 'test', ...(upTo > 0 && { upTo }) };
      ({ upTo } = (await longtail.drop(this.pool, wanted)) as { upTo?: number });
    }
    const dropped = test.key('groups:dropped');
    await redis.call('ZUNIONSTORE', dropped, '1', dropped, 'WEIGHTS', '0');
    if (this.decide(2) === 0) await this.lose();
    for (let more = true; more;) ({ more } = await aborts.forget(this.pool));
    expect(await this.keys()).toEqual([]);
    await audit.recount(this.pool, [JOB]);
    expect((await audit.run(this.pool)).findings).toEqual([]);
  }
}

it(
  'a job ends without errors, whichever of its requests and groups are lost',
  async () => {
    await fc.assert(
      fc.asyncProperty(policies, fc.constantFrom(1, 2), decisions, async (policy, minSamples, decide) => {
        await test.fresh();
        const world = new World(policy, minSamples, decide);
        let trainerEpoch: string | undefined;
        let round: Round | undefined;
        for (let step = 1; step <= 2; step++) {
          const { longtail: queue } =
            step === 1 ? { longtail: { groups: 0 } } : await rounds.jobStatus(test.pool, { job: JOB });
          round = await world.open(step, decide(2) === 0 ? 0 : Math.min(2, queue.groups), trainerEpoch);
          ({ trainerEpoch } = round);
          for (let acts = decide(25); acts > 0; acts--) await world.act(round);
          await world.lose();
          for (let acts = decide(6); acts > 0; acts--) await world.act(round);
          await world.finish(round);
        }
        await world.endJob(round!);
      }),
      { numRuns: RUNS },
    );
  },
  120_000 + RUNS * 5_000,
);
