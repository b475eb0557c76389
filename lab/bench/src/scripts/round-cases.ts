import { randomUUID } from 'node:crypto';
import { LIMITS, type Claim, type Epoch, type TailPolicy } from '@broomwagon/contracts';
import { roundTerms } from '@broomwagon/policies';
import {
  AbortStore,
  SnapshotStore,
  LedgerStore,
  LongtailStore,
  InspectionStore,
  pagesOfGroups,
  RequestStore,
  RoundStore,
} from '@broomwagon/state';
import { readToEnd } from '@broomwagon/testing';
import type { BenchWorker } from '../generator/jobs';
import type { TimedRunner } from './timed-runner';

const JOB = 'job';
const LONG_MS = 86_400_000;
/** Policy `resume`, since it keeps most data. */
const POLICY = {
  name: 'resume',
  overProvision: 2,
  shortfall: 'accept-fewer',
  equalRewards: 'exclude',
} as const satisfies TailPolicy;

/** Measures rounds of the largest groups, and of most groups per page, through all transitions. */
export class RoundCases {
  private readonly rounds;
  private readonly requests;
  private readonly aborts;
  private readonly snapshots;
  private readonly inspections;
  private readonly longtail;
  private readonly ledgers;
  private submitted = 0;
  private readonly name = randomUUID();
  private claims = 0;
  private repeat = 0;

  constructor(
    private readonly runner: TimedRunner,
    private readonly pool: string,
    private worker: BenchWorker,
  ) {
    this.rounds = new RoundStore(runner);
    this.requests = new RequestStore(runner);
    this.aborts = new AbortStore(runner);
    this.snapshots = new SnapshotStore(runner);
    this.inspections = new InspectionStore(runner);
    this.longtail = new LongtailStore(runner);
    this.ledgers = new LedgerStore(runner);
  }

  /** @param shapes groups and samples of each round @param jobs number of invented jobs that claims name */
  async run(shapes: readonly (readonly [groups: number, samples: number])[], jobs: number): Promise<void> {
    this.repeat += 1;
    for (const [groups, samples] of shapes) await this.shape(groups, samples);
    await this.lanes(jobs);
  }

  /** Measures a job with twice the needed groups: one half is trained, the other cut, taken again and dropped. */
  private async shape(groups: number, samples: number): Promise<void> {
    const { pool, runner } = this;
    const job = `${JOB}-${samples}-${this.repeat}`;
    const input = `${groups} groups of ${samples}`;
    await runner.measure(input, async () => {
      let { trainerEpoch } = await this.open(job, 1, groups / 2, groups, 0);
      const round = { job, roundId: 'r1' };
      await this.submit({ ...round, trainerEpoch }, groups, samples);
      await this.rounds.status(pool, { job });
      const held = await this.claimAll();
      await this.inspections.requests(pool, { job });
      await this.inspections.request(pool, { requestId: held[0]!.requestId });
      await this.inspections.rounds(pool, { job });
      await this.inspections.groups(pool, { job });
      for (const claim of held.slice(0, 8)) await this.save(claim);
      for (const savedTokens of [0, 50]) await this.saveMany(held.slice(8, 8 + LIMITS.page), savedTokens);
      const needed = held.slice(0, (groups / 2) * samples);
      await this.complete(needed);
      for (let cursor: number | undefined = 0; cursor !== undefined;) {
        ({ cursor } = await this.rounds.cut(pool, { ...round, cursor }));
      }
      for (let page = 0; page < 3; page++) {
        await this.rounds.results(pool, { ...round, limit: LIMITS.groupsPerResultsPage, trainerEpoch });
      }
      await this.reward(round, trainerEpoch, samples);
      for (const claim of held.slice(needed.length)) await this.fail(claim);
      await this.close(round, trainerEpoch);
      for (let cursor: number | undefined = 0; cursor !== undefined;) {
        ({ cursor } = await this.rounds.listLongtail(pool, { job, cursor }));
      }
      const save = { job, trainerEpoch, tag: 't' };
      while ((await this.snapshots.save(pool, save)).state === 'saving');
      ({ trainerEpoch } = await this.open(job, 2, groups / 2, 0, groups / 2));
      for (let state = 'opening'; state === 'opening';) {
        ({ state } = await this.rounds.take(pool, { job, roundId: 'r2' }));
      }
      const again = await this.claimAll();
      const handedIn = again.slice(0, 4);
      for (const claim of handedIn) await this.longtail.requeue(pool, this.end(claim, 150));
      await this.longtail.repeat(pool, { cursor: 0 });
      const cancel = { job, roundId: 'r2', trainerEpoch, mode: 'requeue' as const, reason: 'bench' };
      await this.rounds.cancel(pool, cancel);
      for (let more = true; more;) ({ more } = await this.rounds.giveBack(pool, cancel));
      for (let cursor: number | undefined = 0; cursor !== undefined;) {
        ({ cursor } = await this.rounds.cut(pool, { ...cancel, cursor }));
      }
      await this.requests.segments(pool, { requestId: again[0]!.requestId });
      for (const claim of again.slice(handedIn.length)) await this.fail(claim);
      for await (const _ of this.rounds.whileMore('fold', pool, { job, roundId: 'r2' }));
      await this.jobAtRest(job, samples);
    });
    await this.abortAll(job, input);
  }

  /** Reports rewards, which are equal in half of the groups. */
  private async reward(round: { job: string; roundId: string }, trainerEpoch: Epoch, samples: number): Promise<void> {
    const { groups } = await this.rounds.results(this.pool, { ...round, limit: LIMITS.groupsPerReward });
    await this.rounds.reward(this.pool, {
      ...round,
      trainerEpoch,
      remainingGroups: 0,
      field: 'groups',
      groups: groups
        .filter(({ more }) => more !== true)
        .map(({ groupId }, position) => ({ groupId, rewards: samples, isEqual: position % 2 === 0 })),
    });
  }

  /** Runs the operations of a job at rest: all its groups are in the queue and in a snapshot. */
  private async jobAtRest(job: string, samples: number): Promise<void> {
    const { pool } = this;
    await this.rounds.progress(pool, { job, history: true });
    await this.ledgers.read(pool, { job });
    await this.rounds.owns(pool, { job, owner: 'group-0', ref: 'p' });
    let { trainerEpoch } = await this.rounds.takeover(pool, { job, takeoverId: `takeover-${job}` });
    const dropped = { job, trainerEpoch, reason: 'bench' };
    for (let upTo: number | undefined, more = true; more;) {
      ({ upTo } = await this.longtail.drop(pool, { ...dropped, upTo }));
      more = upTo !== undefined;
    }
    let restored = await this.snapshots.restore(pool, { job, tag: 't' });
    ({ trainerEpoch } = restored);
    while (restored.state === 'restoring')
      restored = await this.snapshots.restore(pool, { job, tag: 't', trainerEpoch });
    const { groups } = await this.rounds.listLongtail(pool, { job, cursor: 0 });
    const trained = groups.slice(0, groups.length / 2).map(({ groupId }) => ({ groupId, samples }));
    const groupIds = Array.from({ length: LIMITS.groupsPerReconcile }, (_, index) => `unknown-${index}`);
    const pages = pagesOfGroups(trained);
    for (const page of pages) {
      const isLast = page === pages.at(-1);
      await this.rounds.reconcile(pool, {
        job,
        trainerEpoch,
        step: 2,
        groups: page,
        isLast,
        groupIds: isLast ? groupIds : [],
      });
    }
    for (const tag of ['t2', 't3']) {
      while ((await this.snapshots.save(pool, { job, trainerEpoch, tag })).state === 'saving');
    }
    await this.snapshots.list(pool, { job });
    for (let more = true; more;) ({ more } = await this.snapshots.unlink(pool));
  }

  private async abortAll(job: string, input: string): Promise<void> {
    const { pool, runner } = this;
    await runner.measure(`${input}, aborted`, async () => {
      const abortId = `abort-${job}`;
      await this.aborts.begin(pool, { abortId, selector: { job }, reason: 'bench', keptMs: 1 });
      for (let more = true; more;) ({ more } = await this.aborts.select(pool, { abortId }));
      await this.aborts.results(pool, { abortId, cursor: 0, limit: LIMITS.page });
      await this.aborts.repeat(pool, { deadlineMs: LONG_MS });
      for (let more = true; more;) ({ more } = await this.aborts.forget(pool));
      await this.rounds.jobStatus(pool, { job });
      await this.rounds.due(pool);
    });
  }

  /** Measures claims that name as many jobs as allowed, all of them unknown. */
  private async lanes(jobs: number): Promise<void> {
    const { pool, runner, worker } = this;
    await runner.measure('invented jobs', async () => {
      for (let lane = 0; lane < jobs; lane++) {
        const claim = {
          claimId: `lane-${this.repeat}-${lane}`,
          ...worker,
          max: 1,
          job: `invented-${this.repeat}-${lane}`,
          waitMs: 30_000,
          replyTo: 'i',
        };
        await this.requests.claim(pool, claim).catch(() => undefined);
      }
      await this.requests.grantClaims(pool);
    });
  }

  /** Opens a round of a new job and claims all its requests for the worker. */
  async openAndClaim(name: string, requests: number, samples: number): Promise<Claim[]> {
    const job = `${name}-${this.repeat}`;
    const count = requests / samples;
    const { trainerEpoch } = await this.open(job, 1, count, count, 0);
    await this.submit({ job, roundId: 'r1', trainerEpoch }, count, samples);
    return this.claimAll(job);
  }

  private async open(job: string, step: number, neededGroups: number, newGroups: number, takeGroups: number) {
    const plan = {
      kind: newGroups === 0 ? ('long' as const) : ('short' as const),
      neededGroups,
      takeGroups,
      newGroups,
    };
    const known = step > 1 ? (await this.rounds.jobStatus(this.pool, { job })).trainerEpoch : undefined;
    return this.rounds.open(this.pool, {
      ...roundTerms(POLICY, plan, {}),
      ...plan,
      job,
      roundId: `r${step}`,
      planId: `p${step}`,
      step,
      policy: POLICY,
      weightVersion: 0,
      orphanAfterMs: LONG_MS,
      trainerEpoch: known,
    });
  }

  private async submit(args: Parameters<RoundStore['submit']>[1], count: number, samples: number): Promise<void> {
    const groups = Array.from({ length: count }, () => ({
      groupId: `group-${this.submitted++}`,
      digest: 'digest',
      samples,
      maxTokens: 1_000,
      promptRef: 'p'.repeat(128),
      sampling: '{"temperature":1}',
    }));
    await this.rounds.checkSubmit(this.pool, args, groups.slice(0, LIMITS.groupsPerSubmit));
    for (const page of pagesOfGroups(groups)) await this.rounds.submit(this.pool, args, page);
  }

  private async claimAll(job?: string): Promise<Claim[]> {
    const held: Claim[] = [];
    for (;;) {
      const claim = { claimId: `${this.name}-${this.claims++}`, ...this.worker, max: LIMITS.claimsPerCall, job };
      const { claims } = await this.requests.claim(this.pool, claim);
      if (claims.length === 0) return held;
      held.push(...claims);
    }
  }

  private save(claim: Claim) {
    return this.requests.save(this.pool, { ...this.end(claim, 50), serverId: 's' });
  }
  private saveMany(claims: readonly Claim[], savedTokens: number) {
    const saves = claims.map((claim) => ({ ...this.end(claim, 50), serverId: 's', savedTokens }));
    return this.requests.saveMany(this.pool, { ...this.worker, saves });
  }
  private complete(claims: readonly Claim[]) {
    const completes = claims.map((claim) => ({ ...this.end(claim, 100), finishReason: 'stop' as const }));
    return this.requests.completeMany(this.pool, { ...this.worker, completes });
  }
  private fail(claim: Claim) {
    const failure = { countsAsFailure: false, retryable: true, reason: 'aborted' as const };
    return this.requests.fail(this.pool, { ...this.end(claim, 100), ...failure });
  }

  private end({ requestId, attempt }: Claim, tokens: number) {
    const ref = 'r'.repeat(256);
    const segment = { serverId: 's', serverEpoch: 'e1', weightVersion: 0, tokenCount: tokens, ref, attempt };
    return { requestId, attempt, ...this.worker, segment: JSON.stringify(segment), tokens };
  }

  private async close(
    round: { job: string; roundId: string },
    trainerEpoch: Awaited<ReturnType<RoundCases['open']>>['trainerEpoch'],
  ) {
    const { cursor } = await readToEnd((from) =>
      this.rounds.results(this.pool, { ...round, cursor: from, limit: LIMITS.groupsPerResultsPage }),
    );
    await this.ledgers.count(this.pool, round);
    await this.rounds.close(this.pool, { ...round, trainerEpoch, cursor });
    for await (const _ of this.rounds.whileMore('fold', this.pool, round));
  }
}
