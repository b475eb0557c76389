import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import {
  BroomwagonError,
  isBroomwagonError,
  type JobId,
  type PoolName,
  type RoundKind,
  type RoundPlan,
  type RoundStatus,
  type TailPolicy,
} from '@broomwagon/contracts';
import type { TypedClient } from '@broomwagon/messaging';
import type { PromptRecord } from '../prompts/prompt-record';
import { tailSeconds, type DoneSample } from '../report/arithmetic';
import type { StepReport } from '../report/report';
import type { ResultSink } from '../results/result-line';
import { GroupSubmitter, type GroupSettings } from './group-submitter';
import { Operations } from './operations';
import { ResultsReader } from './results-reader';

/** The status is looked at so often while nothing comes. */
const DEFAULT_LOOK_MS = 1_000;
const SETTLE_POLL_MS = 100;
/** The counts of cut and requeued are waited for this long at the end. */
const SETTLE_DEADLINE_MS = 10_000;

/** What a trainer trains on, and how. */
export interface TrainerLoopSettings extends GroupSettings {
  pool: PoolName;
  job: JobId;
  /** The data set, in order; every prompt is trained exactly once. */
  prompts: readonly PromptRecord[];
  groupsPerStep: number;
  policy: TailPolicy;
  /** Continues a job whose trainer is gone (or fences it, if it is not). Default false: a new job. */
  takeover?: boolean;
  /** The results are waited for this long between two looks at the status, milliseconds. Default 1,000. */
  lookMs?: number;
  /** A call is repeated for this long. Default 60,000. */
  deadlineMs?: number;
  signal?: AbortSignal;
}

/** Measures the engines over a step. */
export interface IdleMeter {
  begin(): Promise<void>;
  /** Called at each look at the round. */
  observe?(): Promise<void>;
  /** Idle share since `begin`; null when it cannot be told. */
  end(): Promise<number | null>;
}

/** What a trainer is connected to besides the protocol. */
export interface TrainerLoopHooks {
  sink: ResultSink;
  meter?: IdleMeter;
  /**
   * The engines get the weights of so many steps; before each new round. Returns their version, if that is another.
   * @param trainer for whom; absent before the first round
   */
  setWeightVersion?(version: number, trainer?: { job: JobId; trainerEpoch: number }): Promise<number | void>;
  /** At each look at the open round. */
  onStatus?(status: RoundStatus): void;
  /** After each step, once the cut of its round is confirmed and counted. */
  onStep?(step: StepReport): void;
}

interface CurrentRound {
  roundId: string;
  step: number;
  kind: RoundKind;
  neededGroups: number;
  /** Groups of the data set that were submitted before this round. */
  basePosition: number;
  newGroups: number;
}

/**
 * A trainer that speaks nothing but the protocol: plan, open, submit, watch, read results, acknowledge, until the data
 * set is trained. It keeps nothing that a takeover cannot ask for: a second one with `takeover` goes on where it ended.
 */
export class TrainerLoop {
  private readonly operations: Operations;
  private readonly submitter: GroupSubmitter;
  private trainerEpoch: number | undefined;
  /** Groups of the data set submitted so far. */
  private position = 0;
  /** Groups the job had been given before this data set. */
  private offset = 0;
  /** Steps whose cut had not been confirmed at the last look. */
  private readonly unsettled = new Set<StepReport>();

  constructor(
    client: TypedClient,
    private readonly settings: TrainerLoopSettings,
    private readonly hooks: TrainerLoopHooks,
  ) {
    const { pool, job, deadlineMs = 60_000, signal } = settings;
    this.operations = new Operations(client, pool, { deadlineMs, signal });
    this.submitter = new GroupSubmitter(this.operations, job, settings);
  }

  /**
   * Drives rounds until everything is trained. Returns the steps this trainer drove.
   * @throws BroomwagonError FENCED when another trainer took over; whatever stays wrong until the deadline
   */
  async run(): Promise<StepReport[]> {
    const steps: StepReport[] = [];
    let round = await this.findPosition();
    for (;;) {
      this.settings.signal?.throwIfAborted();
      const startedMs = performance.now();
      await this.hooks.meter?.begin();
      round ??= await this.openNext();
      if (round === undefined) {
        await this.settleAllCounts();
        return steps;
      }
      const report = await this.drive(round, startedMs);
      steps.push(report);
      round = undefined;
    }
  }

  private async findPosition(): Promise<CurrentRound | undefined> {
    const { job } = this.settings;
    if (this.settings.takeover !== true) {
      this.offset = (await this.submittedGroups()) ?? 0;
      return undefined;
    }
    const found = await this.operations.call('round.takeover', { job, takeoverId: randomUUID() });
    this.trainerEpoch = found.trainerEpoch;
    this.position = found.submittedGroups;
    const { round } = found;
    if (round === undefined) return undefined;
    return { ...round, basePosition: this.position - (round.roundGroups - round.takenGroups) };
  }

  /** Undefined: nothing is left to train. */
  private async openNext(): Promise<CurrentRound | undefined> {
    const { job, prompts, groupsPerStep } = this.settings;
    for (;;) {
      const remainingGroups = prompts.length - this.position;
      const policy = { ...this.settings.policy };
      const { trainerEpoch } = this;
      const wish = { job, groupsPerStep, remainingGroups, policy, trainerEpoch };
      const plan = await this.operations.call('round.next', wish);
      if (plan.kind === 'done') return undefined;
      try {
        return await this.open(plan as RoundPlan & { kind: RoundKind }, remainingGroups);
      } catch (error) {
        if (!isBroomwagonError(error, 'PLAN_STALE')) throw error;
      }
    }
  }

  private async open(plan: RoundPlan & { kind: RoundKind }, remainingGroups: number): Promise<CurrentRound> {
    const { job, policy } = this.settings;
    const { planId, step, kind, neededGroups, newGroups, takeGroups } = plan;
    const { trainerEpoch } = this;
    const trainer = trainerEpoch === undefined ? undefined : { job, trainerEpoch };
    const weightVersion = (await this.hooks.setWeightVersion?.(step - 1, trainer)) ?? undefined;
    const roundId = `${job}-step-${step}`;
    // Failed groups are replaced as long as the data set has as many again; near its end the step needs fewer.
    const shortfall = remainingGroups - newGroups >= neededGroups ? 'replace' : 'accept-fewer';
    const reply = await this.operations.call('round.open', {
      job,
      roundId,
      planId,
      step,
      kind,
      neededGroups,
      newGroups,
      takeGroups,
      policy: { ...policy, shortfall },
      weightVersion,
      trainerEpoch,
    });
    this.trainerEpoch = reply.trainerEpoch;
    return { roundId, step, kind, neededGroups, newGroups, basePosition: this.position };
  }

  private async drive(round: CurrentRound, startedMs: number): Promise<StepReport> {
    const { job, lookMs = DEFAULT_LOOK_MS, signal } = this.settings;
    const { roundId } = round;
    const trainerEpoch = this.trainerEpoch!;
    const results = new ResultsReader(this.operations, job, roundId);
    const doneSamples: DoneSample[] = [];
    let status: RoundStatus;
    for (;;) {
      status = await this.operations.call('round.status', { job, roundId, trainerEpoch });
      doneSamples.push({ atMs: performance.now(), done: status.requestsDone });
      this.hooks.onStatus?.(status);
      if (status.state === 'completed') break;
      if (status.state === 'open') {
        if (status.roundGroups - status.takenGroups < round.newGroups) {
          await this.submit(round, round.basePosition, round.newGroups);
          continue;
        }
        if (status.shortfallGroups > 0) await this.replace(round, status);
      }
      signal?.throwIfAborted();
      await Promise.all([results.readNew(trainerEpoch, lookMs), this.settleCounts(), this.hooks.meter?.observe?.()]);
    }
    const completedMs = performance.now();
    const idle = (await this.hooks.meter?.end()) ?? null;
    await results.readNew(trainerEpoch);
    if (!results.complete) {
      throw new BroomwagonError('INTERNAL', `Round ${roundId} is completed, and its results have no end`);
    }
    await this.hooks.sink.writeRound(roundId, results.lines);
    await this.operations.call('round.close', { job, roundId, trainerEpoch, ...results.proof });
    const report: StepReport = {
      step: round.step,
      roundId,
      kind: round.kind,
      groupsAccepted: status.acceptedGroups,
      requestsDone: status.requestsDone,
      requestsCut: status.requestsCut,
      groupsRequeued: status.groupsRequeued,
      wallSeconds: (performance.now() - startedMs) / 1_000,
      idleShare: idle,
      tailSeconds: tailSeconds(doneSamples, completedMs),
    };
    this.unsettled.add(report);
    await this.settleCounts();
    return report;
  }

  /** The cut goes on after the round is completed: its counts are read again, and the step told, once it is settled. */
  private async settleCounts(): Promise<void> {
    for (const report of this.unsettled) {
      const settled = await this.readCounts(report);
      if (!settled) return;
      this.unsettled.delete(report);
      this.hooks.onStep?.(report);
    }
  }

  private async readCounts(report: StepReport): Promise<boolean> {
    try {
      const { job } = this.settings;
      const status = await this.operations.call('round.status', { job, roundId: report.roundId });
      report.requestsDone = status.requestsDone;
      report.requestsCut = status.requestsCut;
      report.groupsRequeued = status.groupsRequeued;
      return status.settled;
    } catch (error) {
      // Summaries of old rounds are not kept for ever.
      if (isBroomwagonError(error, 'ROUND_NOT_FOUND')) return true;
      throw error;
    }
  }

  private async settleAllCounts(): Promise<void> {
    const { signal } = this.settings;
    for (const endsMs = performance.now() + SETTLE_DEADLINE_MS; performance.now() < endsMs;) {
      await this.settleCounts();
      if (this.unsettled.size === 0) return;
      await delay(SETTLE_POLL_MS, undefined, { signal });
    }
    for (const report of this.unsettled) this.hooks.onStep?.(report);
  }

  /** Submits `count` prompts from `from` on (those already there are skipped) and moves the position behind them. */
  private async submit(round: CurrentRound, from: number, count: number): Promise<void> {
    if (count === 0) return;
    const prompts = this.settings.prompts.slice(from, from + count);
    const all = await this.submitter.submit(round.roundId, this.trainerEpoch!, prompts);
    this.position = all
      ? Math.max(this.position, from + prompts.length)
      : ((await this.submittedGroups()) ?? 0) - this.offset;
  }

  private async replace(round: CurrentRound, status: RoundStatus): Promise<void> {
    const left = this.settings.prompts.length - this.position;
    if (left === 0) {
      // Then the round needs fewer, and completes when nothing of it is live.
      if (status.policy.shortfall === 'accept-fewer') return;
      throw new BroomwagonError(
        'ENGINE_ERROR',
        `${status.failedGroups + status.droppedGroups} groups of round ${round.roundId} failed or were aborted, and no ` +
          "prompts are left to replace them; the workers' logs say why they failed",
      );
    }
    await this.submit(round, this.position, Math.min(left, status.shortfallGroups));
  }

  /** Groups ever submitted to the job; undefined for a new one. */
  private async submittedGroups(): Promise<number | undefined> {
    try {
      return (await this.operations.call('job.status', { job: this.settings.job })).submittedGroups;
    } catch (error) {
      if (isBroomwagonError(error, 'JOB_NOT_FOUND')) return undefined;
      throw error;
    }
  }
}
