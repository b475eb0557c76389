import { setTimeout as sleep } from 'node:timers/promises';
import {
  BroomwagonError,
  type Epoch,
  type GroupId,
  isBroomwagonError,
  LIMITS,
  type RoundStatus,
} from '@broomwagon/contracts';
import { measureStep, type StepReport } from './step-report';
import type { DoneSample } from './tail-seconds';
import { listTrainedGroups } from '../results/held-step';
import { GroupSubmitter } from './group-submitter';
import { type LostGroup, LostGroups } from './lost-groups';
import { makeGroupsAgain, untilForgotten } from './make-again';
import { openNextRound, type CurrentRound } from './open-round';
import type { Operations } from './operations';
import { splitPages } from './pages';
import { reconcile, type Reconciled } from './reconcile';
import { ResultsReader } from './results-reader';
import { StepCounts } from './step-counts';
import type { TrainerLoopHooks, TrainerLoopSettings } from './trainer-loop.types';
import { TrainerRecord } from './trainer-record';

/** Interval of reads of the status while no result comes. */
const DEFAULT_LOOK_MS = 1_000;

/** Maximum reconciliations before another step is trained; after them, the error ends the trainer. */
const MAX_RECONCILES = 50;
/**
 * Reconciliations without a pause. Later ones follow a pause of `lookMs`, doubled each time up to eight times as long.
 */
const PROMPT_RECONCILES = 3;
const MAX_LOOKS_OF_PAUSE = 8;
/**
 * Maximum reads of a completed round whose results have no end: Redis may count groups that it has lost until they are
 * recounted.
 */
const MAX_LOOKS_FOR_END = 600;

/** Maximum rounds of one step that this trainer gives up because tokens of their results are lost. */
const MAX_GIVEN_UP = 5;

/**
 * A trainer that uses only the protocol: plan, open, submit, watch, read results, acknowledge, until the data set is
 * trained. A second trainer continues with the groups in `held`. When Redis loses its last transitions, the trainer
 * reports the groups that it has trained, reads the other results again, and continues.
 */
export class TrainerLoop {
  private readonly submitter: GroupSubmitter;
  private readonly record: TrainerRecord;
  private trainerEpoch: Epoch | undefined;
  private reading: { roundId: string; results: ResultsReader } | undefined;
  /** Reconciliations since the last trained step. */
  private reconciles = 0;
  /** Rounds given up since the last trained step. */
  private givenUp = 0;
  /** Groups of the last round whose prompts the payload store has lost. */
  private lostPrompts: GroupId[] = [];
  readonly counts: StepCounts;
  private readonly lostGroups: LostGroups;

  /** @param operations shared with all other callers of this trainer, so that each call detects a loss */
  constructor(
    private readonly operations: Operations,
    private readonly settings: TrainerLoopSettings,
    private readonly hooks: TrainerLoopHooks,
  ) {
    const { job, prompts, held } = settings;
    this.submitter = new GroupSubmitter(operations, job, settings);
    this.record = new TrainerRecord(prompts, held);
    this.lostGroups = new LostGroups(operations, job, hooks.onLost);
    this.counts = new StepCounts(operations, job, (step) => hooks.onStep?.(step), settings.signal);
  }

  /**
   * Drives rounds until everything is trained. Returns the steps this trainer drove.
   * @throws BroomwagonError FENCED when another trainer took over; any error that lasts until the deadline. The details
   *   list every prompt that was not trained in `missing`
   */
  async run(): Promise<StepReport[]> {
    try {
      return await this.trainAll();
    } catch (error) {
      if (!isBroomwagonError(error)) throw error;
      const details = { ...(error.details as object | undefined), missing: this.missing };
      const { code, message, field, retryAfterMs } = error;
      throw new BroomwagonError(code, message, { field, retryAfterMs, details, cause: error });
    }
  }

  private async trainAll(): Promise<StepReport[]> {
    const steps: StepReport[] = [];
    let round: CurrentRound | undefined;
    if (this.settings.held !== undefined) ({ round } = await this.reconcile());
    for (;;) {
      this.settings.signal?.throwIfAborted();
      const startedMs = performance.now();
      try {
        await this.hooks.meter?.begin();
        round ??= await this.openNext();
        if (round === undefined) {
          await this.lostGroups.readLast();
          await this.counts.settleAll();
          return steps;
        }
        const report = await this.drive(round, startedMs);
        if (report === undefined) {
          round = undefined;
          continue;
        }
        steps.push(report);
        this.counts.add(report);
        round = await this.close(round);
        await this.counts.settle();
      } catch (error) {
        if (round !== undefined && isBroomwagonError(error, 'ROUND_CANCELLED')) {
          this.hooks.onCancelled?.(round.roundId);
          round = this.reading = undefined;
          continue;
        }
        if (!(await this.hasLost(error))) throw error;
        round = await this.reconcileLoss();
      }
    }
  }

  /** Prompts that were not trained. At the end, these have failed for good or were dropped. */
  get missing(): GroupId[] {
    return this.record.missing;
  }

  /** Missing prompts whose groups ended without training, with the reasons. */
  get lost(): LostGroup[] {
    return this.lostGroups.named(this.missing);
  }

  /** Whether Redis has lost changes that this trainer has seen: such a loss may have caused the error. */
  private async hasLost(error: unknown): Promise<boolean> {
    if (!isBroomwagonError(error) || this.reconciles >= MAX_RECONCILES) return false;
    if (error.code === 'GENERATION_CHANGED' || error.code === 'ROUND_MISMATCH') return true;
    try {
      await this.operations.call('round.status', { job: this.settings.job });
      return false;
    } catch (cause) {
      return isBroomwagonError(cause, 'GENERATION_CHANGED');
    }
  }

  private async reconcileLoss(): Promise<CurrentRound | undefined> {
    const { round, lostSteps, lostGroups } = await this.reconcile();
    this.hooks.onReconciled?.({ lostSteps, lostGroups });
    return round;
  }

  /** Takes the job over, and makes Redis and this trainer agree. */
  private async reconcile(): Promise<Reconciled> {
    for (;;) {
      this.reconciles += 1;
      const pauses = this.reconciles - PROMPT_RECONCILES;
      if (pauses > 0) await this.pause(Math.min(2 ** (pauses - 1), MAX_LOOKS_OF_PAUSE));
      try {
        this.reading?.results.restart();
        const reconciled = await reconcile(this.operations, this.settings.job, this.record);
        this.trainerEpoch = reconciled.trainerEpoch;
        await this.hooks.repeatWeights?.(this.settings.job, this.trainerEpoch);
        return reconciled;
      } catch (error) {
        if (!isBroomwagonError(error, 'GENERATION_CHANGED') || this.reconciles >= MAX_RECONCILES) throw error;
      }
    }
  }

  /** Waits `looks` times `lookMs`. */
  private async pause(looks = 1): Promise<void> {
    const { lookMs = DEFAULT_LOOK_MS, signal } = this.settings;
    await sleep(looks * lookMs, undefined, { signal });
  }

  /** Opens the next round. Undefined: no group is left to train. */
  private async openNext(): Promise<CurrentRound | undefined> {
    const { settings, hooks, record, trainerEpoch } = this;
    const opened = await openNextRound(this.operations, { settings, hooks, record, trainerEpoch });
    if (opened !== undefined) this.trainerEpoch = opened.trainerEpoch;
    return opened?.round;
  }

  /**
   * Drives a round until its results are written. Undefined: its results have lost tokens, and the round was given up.
   */
  private async drive(round: CurrentRound, startedMs: number): Promise<StepReport | undefined> {
    const { job, lookMs = DEFAULT_LOOK_MS, signal } = this.settings;
    const { roundId } = round;
    const trainerEpoch = this.trainerEpoch!;
    const doneSamples: DoneSample[] = [];
    let status: RoundStatus;
    let results: ResultsReader;
    for (;;) {
      status = await this.operations.call('round.status', { job, roundId, trainerEpoch });
      results = this.findResults(status);
      doneSamples.push({ atMs: performance.now(), done: status.requestsDone });
      this.hooks.onStatus?.(status);
      if (status.state === 'completed') break;
      if (status.state === 'cancelled') throw new BroomwagonError('ROUND_CANCELLED', `Round ${roundId} was cancelled`);
      if (status.state === 'open') {
        const missing = round.newGroups - (status.roundGroups - status.takenGroups);
        if (missing > 0 && (await this.submit(round, missing))) continue;
        if (status.shortfallGroups > 0) await this.replace(round, status);
      }
      signal?.throwIfAborted();
      const looks = [results.readNew(trainerEpoch, lookMs), this.counts.settle(), this.hooks.meter?.observe?.()];
      // All calls have ended before the first error is thrown.
      for (const look of await Promise.allSettled(looks)) if (look.status === 'rejected') throw look.reason;
    }
    const completedMs = performance.now();
    const engines = (await this.hooks.meter?.end()) ?? { idleShare: null, engineSeconds: null };
    await this.readToEnd(roundId, results);
    if (results.missing.length > 0) {
      await this.makeAgain(round, results.missing);
      return undefined;
    }
    const lost = await this.lostGroups.read(roundId);
    const byPayload = lost.filter(({ state, reason }) => state === 'failed' && reason === 'payload');
    this.lostPrompts = this.record.lostPrompts(byPayload.map(({ groupId }) => groupId));
    this.lostGroups.report(lost.filter(({ groupId }) => !this.lostPrompts.includes(groupId)));
    const { lines } = results;
    await this.hooks.sink.writeRound(round, lines);
    this.record.trained(round.step, listTrainedGroups(lines));
    this.givenUp = 0;
    this.reconciles = 0;
    return measureStep(round, status, doneSamples, { startedMs, completedMs, engines });
  }

  private findResults({ roundId, weightVersion }: RoundStatus): ResultsReader {
    if (this.reading?.roundId !== roundId) {
      this.reading = {
        roundId,
        results: new ResultsReader(this.operations, this.settings.job, { roundId, weightVersion }),
      };
    }
    return this.reading.results;
  }

  private async readToEnd(roundId: string, results: ResultsReader): Promise<void> {
    for (let looks = 0; looks < MAX_LOOKS_FOR_END; looks += 1) {
      if (looks > 0) await this.pause();
      await results.readNew(this.trainerEpoch!);
      if (results.complete) return;
    }
    throw new BroomwagonError('INTERNAL', `Round ${roundId} is completed, but its results do not end`);
  }

  private async makeAgain(round: CurrentRound, groupIds: GroupId[]): Promise<void> {
    this.reading = undefined;
    if (++this.givenUp > MAX_GIVEN_UP) {
      const message = `Tokens of accepted groups are repeatedly missing in the payload store: ${groupIds.join(', ')}`;
      throw new BroomwagonError('PAYLOAD_NOT_FOUND', message);
    }
    const trainer = { job: this.settings.job, trainerEpoch: this.trainerEpoch! };
    await makeGroupsAgain(this.operations, trainer, round.roundId, groupIds, this.settings.signal);
    this.record.forget(groupIds);
    this.hooks.onMissing?.(groupIds);
  }

  /** The step counts as trained, also if the call fails. Returns the round to continue with, if any. */
  private async close({ roundId }: CurrentRound): Promise<CurrentRound | undefined> {
    const { job } = this.settings;
    const trainerEpoch = this.trainerEpoch!;
    try {
      await this.operations.call('round.close', { job, roundId, trainerEpoch, ...this.reading!.results.proof });
      await this.submitAgain(this.lostPrompts);
      return undefined;
    } catch (error) {
      // The groups of a round that was cancelled just now must not be queued again: they are trained.
      if (!isBroomwagonError(error, 'ROUND_CANCELLED') && !(await this.hasLost(error))) throw error;
      return this.reconcileLoss();
    }
  }

  /**
   * Marks groups to be submitted again, with prompts that are stored again. Groups whose round is not folded in time
   * stay among the missing groups.
   */
  private async submitAgain(groupIds: readonly GroupId[]): Promise<void> {
    const trainer = { job: this.settings.job, trainerEpoch: this.trainerEpoch! };
    try {
      await untilForgotten(this.operations, trainer, groupIds, this.settings.signal);
    } catch (error) {
      if (isBroomwagonError(error, 'PAYLOAD_NOT_FOUND')) return;
      throw error;
    }
    this.record.forget(groupIds);
    if (groupIds.length > 0) this.hooks.onMissing?.(groupIds);
  }

  /** Submits the next prompts, at most `count`. False when there are none. */
  private async submit(round: CurrentRound, count: number): Promise<boolean> {
    const { newByDomain } = round;
    let prompts = this.record.next(count, newByDomain);
    // Replacements may be of any domain.
    if (prompts.length === 0) prompts = this.record.next(count);
    if (prompts.length === 0) return false;
    const { job } = this.settings;
    const all = await this.submitter.submit(round.roundId, this.trainerEpoch!, prompts);
    this.record.submitted(prompts, round.step);
    if (newByDomain !== undefined) {
      for (const { domain = '' } of prompts) newByDomain.set(domain, (newByDomain.get(domain) ?? 0) - 1);
    }
    if (!all) {
      const ids = prompts.map(({ id }) => id);
      for (const groupIds of splitPages(ids, LIMITS.groupsPerReconcile)) {
        const body = { job, trainerEpoch: this.trainerEpoch!, groupIds };
        this.record.forget((await this.operations.call('job.reconcile', body)).unknown);
      }
    }
    return true;
  }

  private async replace(round: CurrentRound, status: RoundStatus): Promise<void> {
    const left = this.record.remaining;
    if (left === 0) {
      // The round then needs fewer groups, and completes when none of its requests is live.
      if (status.policy.shortfall === 'accept-fewer') return;
      throw new BroomwagonError(
        'ENGINE_ERROR',
        `${status.failedGroups + status.droppedGroups} groups of round ${round.roundId} failed or were aborted, and ` +
          "no prompts are left to replace them; the workers' logs say why they failed",
      );
    }
    await this.submit(round, Math.min(left, status.shortfallGroups));
  }
}
