import { planRound, resolvePolicy, roundRules, roundTerms, type PlanProgress } from '@broomwagon/policies';
import {
  type AttemptId,
  type Epoch,
  type GroupResult,
  isBroomwagonError,
  type RoundPlan,
  type TailPolicy,
} from '@broomwagon/contracts';
import { attemptNumber, flushPrefix, secondDatabaseUrl } from '@broomwagon/testing';
import { expect } from 'vitest';
import { RECOUNT } from './recount.fixture';
import { pagesOfGroups } from './round.store';
import type { NewGroup, ResultsPage } from './round.types';
import { aborts, longtail, redis, requests, rounds, runner, workers, WorkerWorld } from './worker-world.fixture';
import { JOB, WorldAborts } from './world-aborts.fixture';

export { endWorlds, ledgers, RUNS } from './worker-world.fixture';
export { aborts, JOB, longtail, redis, rounds, runner };

/** A trainer, two workers and the sweep, each doing one step at a time in an order that `decide` chooses. */
export class World extends WorkerWorld {
  readonly trained = new Map<string, GroupResult>();
  failedGroups = 0;
  readonly aborts = new WorldAborts(runner, redis, this);
  steps = 0;
  protected epoch: Epoch | undefined;
  protected takeovers = 0;
  protected plan: RoundPlan | undefined;
  protected refused: RoundPlan | undefined;
  protected roundId = '';
  protected toSubmit: NewGroup[][] = [];
  protected submitted = 0;
  protected cutCursor = 0;

  constructor(
    readonly groups: number,
    readonly samples: number,
    readonly groupsPerStep: number,
    policy: TailPolicy,
    decide: (choices: number) => number,
    /**
     * Samples with which a group that loses others for good is still accepted. If fewer than all suffice, samples are
     * aborted alone too.
     */
    readonly minSamples = samples,
  ) {
    super(policy, decide);
  }

  async start(): Promise<void> {
    await this.register('w1');
    await this.register('w2');
  }

  /** Does the next step of the trainer. @returns false when the data set is trained */
  async train(): Promise<boolean> {
    if (this.plan === undefined) return this.open();
    const page = this.toSubmit.shift();
    if (page !== undefined) {
      const args = { job: JOB, roundId: this.roundId, trainerEpoch: this.epoch! };
      const answer = await this.send(() => rounds.submit(this.pool, args, page));
      if (isBroomwagonError(answer)) {
        // The round was completed by groups of the queue before its last page, so the rest is for a later round.
        expect(answer.code).toBe('ROUND_NOT_OPEN');
        this.toSubmit = [];
      }
      this.submitted = (await rounds.jobStatus(this.pool, { job: JOB })).submittedGroups;
      return true;
    }
    const status = await rounds.status(this.pool, { job: JOB, trainerEpoch: this.epoch });
    if (status.state !== 'completed') return true;
    if (this.decide(3) === 0) return true;
    await this.close();
    return true;
  }

  private async open(): Promise<boolean> {
    // An open that was refused for now is repeated unchanged, because the first one may still arrive.
    const plan = this.refused ?? (await this.makePlan());
    if (plan.kind === 'done') return false;
    const { kind } = plan;
    this.roundId = this.nameRound(plan.step);
    const args = {
      ...plan,
      kind,
      job: JOB,
      roundId: this.roundId,
      policy: this.policy,
      weightVersion: plan.step,
      orphanAfterMs: 600_000,
      trainerEpoch: this.epoch,
      ...roundTerms(this.policy, { ...plan, kind }, await this.progress()),
    };
    const answer = await this.send(() => rounds.open(this.pool, args));
    if (isBroomwagonError(answer)) {
      // Groups of the plan may have been aborted meanwhile. Then the trainer makes another plan.
      if (answer.code === 'PLAN_STALE') expect(this.aborts.ids.length).toBeGreaterThan(0);
      else expect(answer.code).toBe('ROUND_SETTLING');
      this.refused = answer.code === 'PLAN_STALE' ? undefined : plan;
      return true;
    }
    this.epoch = answer.trainerEpoch;
    for (let state = answer.state; state === 'opening';) {
      state = ((await this.send(() => rounds.take(this.pool, args))) as { state: typeof state }).state;
    }
    this.refused = undefined;
    this.plan = plan;
    const fresh = Array.from({ length: plan.newGroups }, (_, offset) => this.group(this.submitted + offset));
    this.toSubmit = this.decide(2) === 0 ? pagesOfGroups(fresh) : fresh.map((group) => [group]);
    this.cutCursor = 0;
    return true;
  }

  protected nameRound(step: number): string {
    return `r${step}`;
  }

  private async makePlan(): Promise<RoundPlan> {
    return planRound(await this.progress(), {
      groupsPerStep: this.groupsPerStep,
      remainingGroups: this.groups - this.submitted,
      policy: this.policy,
    });
  }

  private async progress(): Promise<PlanProgress> {
    return (await rounds.progress(this.pool, { job: JOB, history: true })) as unknown as PlanProgress;
  }

  private async close(): Promise<void> {
    const { job, roundId, pool } = { job: JOB, roundId: this.roundId, pool: this.pool };
    let cursor: string | undefined;
    let accepted = 0;
    for (let complete = false; !complete;) {
      const page: ResultsPage = await rounds.results(pool, { job, roundId, cursor, limit: 2 });
      for (const group of page.groups) this.check(group);
      accepted += page.groups.length;
      ({ cursor, complete } = page);
    }
    if (this.policy.shortfall !== 'accept-fewer') expect(accepted).toBe(this.plan!.neededGroups);
    const args = { job, roundId, trainerEpoch: this.epoch!, cursor: cursor! };
    const closed = await this.send(() => rounds.close(pool, args));
    expect(closed).toMatchObject({ trainedGroups: accepted, stepsTrained: this.steps + 1 });
    this.steps += 1;
    this.plan = undefined;
  }

  /** Checks that a trained group is complete and new, and has exactly the acknowledged tokens. */
  private check(group: GroupResult): void {
    expect(this.trained.has(group.groupId), `${group.groupId} trained twice`).toBe(false);
    this.trained.set(group.groupId, group);
    const samples = new Set(group.samples.map((sample) => sample.sampleIndex)).size;
    expect(samples).toBe(group.samples.length);
    expect(samples).toBeLessThanOrEqual(this.samples);
    expect(samples).toBeGreaterThanOrEqual(this.minSamples);
    for (const sample of group.samples) {
      expect(this.aborts.stopped.has(sample.requestId), `${sample.requestId} trained`).toBe(false);
      const expected = [...(this.acknowledged.get(sample.requestId) ?? [])].filter(([, tokens]) => tokens > 0);
      const entered = sample.segments.map((segment) => [segment.attempt, segment.tokenCount] as [AttemptId, number]);
      const { policy } = resolvePolicy(this.policy, {});
      if (roundRules(policy, 'short').onCut === 'discard' || policy.maxVersionSpan !== undefined) {
        for (const segment of entered) expect(expected).toContainEqual(segment);
      } else {
        expect(entered).toEqual(expected.sort(([a], [b]) => attemptNumber(a) - attemptNumber(b)));
      }
      expect(sample.tokenCount).toBe(entered.reduce((sum, [, tokens]) => sum + tokens, 0));
    }
  }

  async sweep(): Promise<void> {
    const due = await rounds.due(this.pool);
    if (due.expiredEpochs > 0 && this.decide(2) === 0) await this.send(() => requests.expiredAttempts(this.pool));
    for (const round of due.rounds) {
      if (round.state === 'opening') await this.send(() => rounds.take(this.pool, round));
      if (round.state === 'cancelled') await this.confirm((await rounds.giveBack(this.pool, round)).aborts);
      const mayFold = round.state === 'closed' || round.state === 'cancelled';
      if (mayFold && this.decide(2) === 0) await this.send(() => rounds.fold(this.pool, round));
      const page = await rounds.cut(this.pool, { ...round, cursor: this.cutCursor });
      this.cutCursor = page.cursor ?? 0;
      await this.confirm(page.aborts);
    }
    if (due.leaving > 0) {
      await this.confirm((await longtail.repeat(this.pool, { cursor: 0 })).aborts);
    }
    await this.confirm(await this.aborts.sweep(due));
  }

  abort(): Promise<void> {
    const scene = { roundId: this.roundId, submitted: this.submitted, workerIds: [...this.workers.keys()] };
    return this.aborts.begin(scene, (message) => this.send(message));
  }

  async takeover(): Promise<void> {
    if (this.epoch === undefined) return;
    const id = `t${this.takeovers++}`;
    const before = this.epoch;
    const answer = await rounds.takeover(this.pool, { job: JOB, takeoverId: id });
    expect(await rounds.takeover(this.pool, { job: JOB, takeoverId: id })).toEqual(answer);
    this.epoch = answer.trainerEpoch;
    await expect(rounds.status(this.pool, { job: JOB, trainerEpoch: before })).rejects.toMatchObject({
      code: 'FENCED',
    });
  }

  async audit(): Promise<void> {
    expect(await redis.eval(RECOUNT, 1, runner.rootKey(this.pool))).toEqual([]);
  }

  /** Sweeps until nothing is due, or only work that waits for the reply of a worker. */
  async settle(): Promise<void> {
    for (let page = 0; page < 200; page++) {
      const due = await rounds.due(this.pool);
      if (due.rounds.length + due.aborts.length + due.aborting + due.leaving + due.expiredEpochs === 0) break;
      await this.sweep();
    }
    await this.audit();
  }

  /**
   * Deregisters all workers, also workers that have received no abort. Their attempts are returned, and groups that
   * waited for them are folded.
   */
  async stopWorkers(): Promise<void> {
    for (const [workerId, epoch] of this.workers) await workers.deregister(this.pool, { workerId, workerEpoch: epoch });
    for (let more = true; more;) ({ more } = await requests.expiredAttempts(this.pool));
    await this.settle();
  }

  /** Deletes the keys of the pool, so that audits of the next data set do not read them. */
  async end(): Promise<void> {
    await flushPrefix(secondDatabaseUrl(), `${runner.rootKey(this.pool)}:`);
  }

  private group(position: number): NewGroup {
    return {
      groupId: `g${position}`,
      digest: `d${position}`,
      samples: this.samples,
      minSamples: this.minSamples,
      maxTokens: 100,
      promptRef: `prompt${position}`,
      sampling: '{}',
    };
  }
}
