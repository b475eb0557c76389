import type { Epoch } from '@broomwagon/contracts';
import { computeDispatch, type PlanProgress, type PromptLengths, roundTerms } from '@broomwagon/policies';
import {
  type ModelGroup,
  type ModelRequest,
  type ModelRound,
  type ModelSegment,
  type ModelSubmission,
  type RoundModel,
} from '@broomwagon/models';
import { flushPrefix, testPool, secondDatabaseUrl } from '@broomwagon/testing';
import { expect } from 'vitest';
import {
  type Ended,
  type FailureKind,
  type GivenAttempt,
  isOver,
  formatAttemptName,
  type PlannedOpening,
  type RoundFollower,
  WORKERS,
} from '../../../../lab/models/src/rounds/round-follower.fixture';
import { type AbortSelector, AbortStore } from '../aborts/abort.store';
import { LedgerStore } from '../ledger/ledger.store';
import { promptHash, PromptMemoryStore } from '../ledger/prompt-memory.store';
import { FunctionRunner } from '../library/function-runner';
import { LongtailStore } from '../longtail/longtail.store';
import { connectRedis } from '../redis';
import { type AttemptFence, RequestStore } from '../requests/request.store';
import { SnapshotStore } from '../snapshots/snapshot.store';
import { WorkerStore } from '../workers/worker.store';
import { inOrder, normalized, sumTotals, toGroupView, viewOfRound } from './model-views.fixture';
import { readJob } from './read-job.fixture';
import { RoundStore } from './round.store';
import { toRequestId, attemptName, getErrorCode, ended, toGroupResult, wire } from './script-answers.fixture';
import { ScriptMoves } from './script-moves.fixture';
import { JOB } from './world-aborts.fixture';

const redis = connectRedis({ url: secondDatabaseUrl() });
const { pool: prefix } = testPool();
const runner = new FunctionRunner(redis, prefix);
const requests = new RequestStore(runner);
const workers = new WorkerStore(runner);
const rounds = new RoundStore(runner);
const aborts = new AbortStore(runner);
const ledgers = new LedgerStore(runner);
const longtail = new LongtailStore(runner);
const snapshots = new SnapshotStore(runner);
const memory = new PromptMemoryStore(runner);
/** Lengths in the prompt memory of the prompts of the first groups. */
const REMEMBERED = [[], [90, 250], [2_000, 5_000], [], [70], [900, 900, 40], [], [300], [80, 90], [6_000]];
/** Index of the group whose lengths were cut at maxTokens. */
const AT_CAP = 8;
let opened = 0;

/** Ends the connection and removes all keys. */
export async function closeStores(): Promise<void> {
  await redis.quit();
  await flushPrefix(secondDatabaseUrl(), `${prefix}:`);
}

/** Follows a world of the model with the scripts on a real Redis. */
export class ScriptRounds implements RoundFollower {
  private readonly pool = `pair-${opened++}`;
  private readonly root = runner.rootKey(this.pool);
  private readonly moves = new ScriptMoves(runner, this.pool);
  private readonly epochs = new Map<string, Epoch>();
  private readonly fences = new Map<string, AttemptFence>();
  private trainerEpoch?: Epoch;
  /** Number of calls so far, for unique ids of registrations, claims, aborts and takeovers. */
  private calls = 0;

  async start(): Promise<void> {
    for (const workerId of WORKERS) await this.register(workerId);
    await this.moves.registerServer();
    const prompts = REMEMBERED.map((lengths, position) => {
      return { hash: promptHash(`g${position}`), lengths, atCap: position === AT_CAP };
    });
    await memory.remember(
      this.pool,
      prompts.filter(({ lengths }) => lengths.length > 0),
    );
  }

  async end(): Promise<void> {
    await flushPrefix(secondDatabaseUrl(), `${this.root}:`);
  }

  async nowMs(): Promise<number> {
    return Number(await redis.hget(`${this.root}:meta`, 'clockMs'));
  }

  async compareProgress(expected: PlanProgress): Promise<void> {
    const { stamp: _, lastRoundId: __, ...said } = await rounds.progress(this.pool, { job: JOB, history: true });
    const progress = said as unknown as PlanProgress;
    expect(normalized(progress)).toEqual(normalized(expected));
    // The scripts open a round and then take its groups; the model does both at once.
    for (const [position, { durationMs }] of (progress.history ?? []).entries()) {
      expect(Math.abs(durationMs - expected.history![position]!.durationMs)).toBeLessThan(10_000);
    }
  }

  async open(opening: PlannedOpening, progress: PlanProgress): Promise<string> {
    const roundId = `r${opening.step}`;
    await this.moves.setWeights(opening.weightVersion);
    const common = { ...opening, job: JOB, roundId, orphanAfterMs: 600_000, trainerEpoch: this.trainerEpoch };
    const terms = roundTerms(opening.policy, opening, progress);
    const answer = await rounds.open(this.pool, { ...common, ...terms }).catch(getErrorCode);
    if (typeof answer === 'string') return answer;
    this.trainerEpoch = answer.trainerEpoch;
    let state: string = answer.state;
    while (state === 'opening') ({ state } = await rounds.take(this.pool, { job: JOB, roundId }));
    return state;
  }

  async readLengths(groupId: string): Promise<PromptLengths | undefined> {
    return (await memory.lengths(this.pool, [promptHash(groupId)]))[0];
  }

  async submit({ step, rules }: ModelRound, groups: readonly ModelSubmission[]): Promise<void> {
    const args = { job: JOB, roundId: `r${step}`, trainerEpoch: this.trainerEpoch! };
    const stored = groups.map(({ lengths, ...group }) => ({
      ...group,
      dispatch: computeDispatch(rules.dispatchOrder, { samples: group.samples, maxTokens: group.maxTokens! }, lengths),
      promptHash: promptHash(group.groupId),
      digest: 'd',
      maxTokens: group.maxTokens!,
      promptRef: 'p',
      sampling: '{}',
    }));
    await rounds.submit(this.pool, args, stored);
  }

  async claim(max: number, workerId: string): Promise<string[]> {
    const holder = { workerId, workerEpoch: this.epochs.get(workerId)! };
    const { claims } = await requests.claim(this.pool, { claimId: `c${this.calls++}`, ...holder, max });
    for (const claim of claims) {
      this.fences.set(attemptName(claim), { requestId: claim.requestId, attempt: claim.attempt, ...holder });
    }
    return claims.map(attemptName);
  }

  async save(attempt: GivenAttempt, made: ModelSegment): Promise<string> {
    const answer = await requests.save(this.pool, { ...this.fence(attempt), ...wire(made) }).catch(getErrorCode);
    return typeof answer === 'string' ? answer : answer.action;
  }

  async complete(attempts: readonly GivenAttempt[], made: readonly ModelSegment[]): Promise<Ended[]> {
    const { workerId, workerEpoch } = this.fence(attempts[0]!);
    const completes = attempts.map((attempt, position) => {
      const { requestId, attempt: number } = this.fence(attempt);
      return { requestId, attempt: number, ...wire(made[position]!), finishReason: 'stop' as const };
    });
    const answers = await requests.completeMany(this.pool, { workerId, workerEpoch, completes });
    return answers.map((answer) => ended(answer instanceof Error ? getErrorCode(answer) : answer));
  }

  async fail(attempt: GivenAttempt, made: ModelSegment, kind: FailureKind): Promise<Ended> {
    const { countsAsFailure = false, retryable = true, timedOut = false } = kind;
    const reason = timedOut ? ('timeout' as const) : ('engine-error' as const);
    const args = { ...this.fence(attempt), ...wire(made), countsAsFailure, retryable, reason };
    return ended(await requests.fail(this.pool, args).catch(getErrorCode));
  }

  async expireWorker(workerId: string): Promise<void> {
    await workers.deregister(this.pool, { workerId, workerEpoch: this.epochs.get(workerId)! });
    for (let more = true; more;) ({ more } = await requests.expiredAttempts(this.pool));
    await this.register(workerId);
  }

  dropGroup({ groupId }: ModelGroup): Promise<string[]> {
    return this.abort({ groupId, job: JOB });
  }

  stopSample(request: ModelRequest): Promise<string[]> {
    return this.abort({ requestIds: [toRequestId(request)], scope: 'sample' });
  }

  async move(request: ModelRequest): Promise<Ended> {
    const { state, aborts } = await this.moves.move(toRequestId(request));
    return { state, aborts: aborts.map(attemptName) };
  }

  expireMoves(): Promise<number> {
    return this.moves.expire();
  }

  async changeWeights(held: readonly GivenAttempt[]): Promise<string[]> {
    return (await this.moves.stopForWeights(held.map((attempt) => this.fence(attempt)))).map(attemptName).sort();
  }

  async requeue(attempt: GivenAttempt, last: ModelSegment | undefined): Promise<Ended> {
    const { workerId: _, workerEpoch: __, ...named } = this.fence(attempt);
    const args = last === undefined ? { ...named, tokens: 0 } : { ...this.fence(attempt), ...wire(last) };
    return ended(await longtail.requeue(this.pool, args).catch(getErrorCode));
  }

  async snapshot(tag: string): Promise<string> {
    const args = { job: JOB, trainerEpoch: this.trainerEpoch!, tag };
    return this.toTheEnd('saving', () => snapshots.save(this.pool, args));
  }

  async restore(tag: string): Promise<string> {
    return this.toTheEnd('restoring', async () => {
      const page = await snapshots.restore(this.pool, { job: JOB, trainerEpoch: this.trainerEpoch!, tag });
      this.trainerEpoch = page.trainerEpoch;
      return page;
    });
  }

  async expireRound(): Promise<boolean> {
    return (await rounds.expire(this.pool)).rounds.length > 0;
  }

  async cut(all: readonly ModelRound[]): Promise<string[]> {
    const told: AttemptFence[] = [];
    for (const { step } of all) {
      for (let cursor: number | undefined = 0; cursor !== undefined;) {
        const page = await rounds.cut(this.pool, { job: JOB, roundId: `r${step}`, cursor });
        told.push(...page.aborts);
        ({ cursor } = page);
      }
    }
    for await (const page of longtail.pages('repeat', this.pool, {})) told.push(...page.aborts);
    return told.map(attemptName).sort();
  }

  async reward({ groupId, round, finished }: ModelGroup, isEqual: boolean, remainingGroups: number) {
    const args = { job: JOB, roundId: `r${round.step}`, trainerEpoch: this.trainerEpoch!, remainingGroups };
    const groups = [{ groupId, rewards: finished, isEqual }];
    return (await rounds.reward(this.pool, { ...args, field: 'groups', groups })).outcomes[0]!.outcome;
  }

  async close({ step, accepted }: ModelRound): Promise<void> {
    const args = { job: JOB, roundId: `r${step}` };
    const { groups, cursor } = await rounds.results(this.pool, { ...args, limit: 128 });
    const results = groups.map(({ groupId, cuts, excluded = false, samples }) => ({
      groupId,
      cuts,
      excluded,
      samples: samples.map(({ sampleIndex, tokenCount, segments }) => ({
        index: sampleIndex,
        tokens: tokenCount,
        segments: segments.map((segment) => [segment.attempt, segment.weightVersion, segment.tokenCount]),
      })),
    }));
    expect(results).toEqual(accepted.map(toGroupResult));
    await rounds.close(this.pool, { ...args, trainerEpoch: this.trainerEpoch!, cursor });
    // The coordinator counts the ledger before the next plan too.
    await ledgers.count(this.pool, args);
  }

  async fold(all: readonly ModelRound[]): Promise<void> {
    for (const round of all.filter(isOver)) {
      for (let done = false; !done;) {
        const page = await rounds.fold(this.pool, { job: JOB, roundId: `r${round.step}` });
        done = !page.more;
      }
    }
  }

  async reconcile(step: number, groups: readonly ModelSubmission[]): Promise<{ counted: number; aborts: string[] }> {
    const { trainerEpoch } = await rounds.takeover(this.pool, { job: JOB, takeoverId: `takeover-${this.calls++}` });
    this.trainerEpoch = trainerEpoch;
    const answer = await rounds.reconcile(this.pool, {
      job: JOB,
      trainerEpoch,
      step,
      groups: groups.map(({ groupId, samples }) => ({ groupId, samples })),
      isLast: true,
      groupIds: groups.map(({ groupId }) => groupId),
    });
    const { cancelledRoundId, unknown, stepsTrained, countedGroups } = answer;
    for (let more = cancelledRoundId !== undefined; more;)
      ({ more } = await rounds.giveBack(this.pool, { job: JOB, roundId: cancelledRoundId! }));
    expect(unknown).toEqual([]);
    expect(stepsTrained).toBe(step);
    return { counted: countedGroups, aborts: answer.aborts.map(attemptName).sort() };
  }

  async compare(model: RoundModel, groups: readonly ModelGroup[], all: readonly ModelRound[]): Promise<void> {
    const { round } = model;
    const real = await readJob(redis, this.root, round && `r${round.step}`);
    const { trained, excluded, failed, dropped, settling } = model.groups;
    expect({ ...real, groups: undefined, round: undefined }).toEqual({
      requestCounts: model.requestCounts,
      counts: { trained, excluded, failed, dropped, settling },
      longtail: inOrder([...model.longtail.groups()]),
      wasted: sumTotals(all.map(({ wasted }) => wasted)),
      groups: undefined,
      round: undefined,
    });
    const kept = new Set(groups.map(({ groupId }) => groupId));
    expect(real.groups.filter(({ groupId }) => kept.has(groupId))).toEqual(
      groups.map(toGroupView).toSorted((a, b) => (a.groupId < b.groupId ? -1 : 1)),
    );
    if (round !== undefined) expect(real.round).toEqual(viewOfRound(round));
  }

  private async abort(selector: AbortSelector): Promise<string[]> {
    const abortId = `a${this.calls++}`;
    await aborts.begin(this.pool, { abortId, selector, reason: 'test', keptMs: 600_000 });
    const told: AttemptFence[] = [];
    for (let more = true; more;) {
      const page = await aborts.select(this.pool, { abortId });
      told.push(...page.aborts);
      more = page.more;
    }
    return told.map(attemptName).sort();
  }

  private async toTheEnd(unfinished: string, page: () => Promise<{ state: string }>): Promise<string> {
    for (;;) {
      const answer = await page().catch(getErrorCode);
      if (typeof answer === 'string') return answer;
      if (answer.state !== unfinished) return answer.state;
    }
  }

  private async register(workerId: string): Promise<void> {
    const registrationId = `reg${this.calls++}`;
    const { workerEpoch } = await workers.register(this.pool, { workerId, registrationId, ttlMs: 600_000 });
    this.epochs.set(workerId, workerEpoch);
  }

  private fence({ request, number }: GivenAttempt): AttemptFence {
    return this.fences.get(formatAttemptName(request, number))!;
  }
}
