import { spawnSync } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { type ManagedProcess, waitUntil } from '@broomwagon/testing';
import { expect } from 'vitest';
import { findFaults, type TestPrompt } from '../system/data-set';
import { toApp, Provocations } from '../system/provocations';
import { AT_RANDOM, type Condition } from './conditions';
import type { SetBackSystem } from './set-back-system';
import { TRAINERS, type TrainerEnd } from './trainers';

const TRAINER_DEADLINE_MS = 120_000;
/** Chance decides which replica gets a call, so a data set may pass without a visit to the failpoint. */
const MAX_DATA_SETS = 4;
/**
 * Samples, as many as a step trains, that are done between the set-back and the faster end of the data set: by then
 * each process has noticed its losses.
 */
const SAMPLES_BEFORE_END = 24;
/** A random moment comes before this share of the samples is done. */
const LATEST_SHARE = 0.8;

/** Moment at which Redis is set back, with the trainer, and the fate of the process at the failpoint. */
export interface Moment extends Pick<Condition, 'trainer' | 'lostMs' | 'moment' | 'victim'> {
  /** Whether the payload store may lose prompts that Redis names. */
  readonly losesPrompts?: boolean;
}

let runs = 0;

/**
 * Trains data sets until Redis was set back in the middle of one. The trainer ends without an error and holds
 * every sample once; Redis counts each as trained once, with nothing left over. Only then the leftovers of provocations
 * are given up, and the audit finds nothing.
 * @returns text with the seconds that were lost
 */
export async function runSetBack(
  stand: SetBackSystem,
  condition: Moment,
  prompts: readonly TestPrompt[],
  random: () => number,
): Promise<string> {
  const { moment } = condition;
  const victim = moment === AT_RANDOM ? undefined : new Victim(stand, moment);
  const over = new AbortController();
  let training: Promise<TrainerEnd> | undefined;
  try {
    for (let tries = 0; tries < MAX_DATA_SETS; tries += 1) {
      // Weight changes of the data set before would delay this one.
      await victim?.provoking;
      const job = `job-${++runs}`;
      const startedMs = performance.now();
      training = train(stand, condition, job, prompts, over.signal);
      let hasEnded = false;
      const end = () => (hasEnded = true);
      training.then(end, end);
      await Promise.race([stand.untilDone(job, 1), training]);
      await delay(Math.max(0, startedMs + condition.lostMs - performance.now()));
      if (victim) await victim.untilStopped(training);
      else await stand.untilDone(job, Math.floor(random() * LATEST_SHARE * sampleCount(prompts)));
      const reached = !hasEnded && (victim === undefined || victim.stopped);
      let lostMs = 0;
      let isKnown = true;
      if (reached) {
        lostMs = await stand.redis.setBack(Math.min(condition.lostMs, performance.now() - startedMs));
        // A trainer cannot notice losses after its last call.
        isKnown = !hasEnded;
        if (condition.victim === 'is killed') victim?.kill();
        else victim?.resume();
        await victim?.endAgain();
        await stand.endSoon(job, SAMPLES_BEFORE_END, training);
      }
      const { held, error } = await training;
      const lost = `lost ${(lostMs / 1_000).toFixed(1)} s`;
      expect({ error, faults: findFaults(job, prompts, held) }, lost).toEqual({ error: undefined, faults: [] });
      if (isKnown) await stand.expectTrained(job, sampleCount(prompts), condition.losesPrompts === true);
      await stand.system.setSpeed();
      if (!reached) continue;
      await victim?.stop();
      await stand.expectAtRest();
      return lost;
    }
    throw new Error(`No data set of ${MAX_DATA_SETS} visited ${moment}`);
  } finally {
    over.abort();
    await training?.catch(() => undefined);
    await victim?.stop();
  }
}

/** One more process of an application, which stops (SIGSTOP) at a failpoint. */
class Victim {
  /** The calls that lead to the failpoint. */
  provoking: Promise<unknown> | undefined;
  private process: ManagedProcess | undefined;
  private provocations: Provocations | undefined;
  private runs = 0;

  constructor(
    private readonly stand: SetBackSystem,
    private readonly failpoint: string,
  ) {}

  get stopped(): boolean {
    return this.process !== undefined && isStopped(this.process);
  }

  /** Starts the process, leads it to the failpoint, and waits until it stops there, or the training has ended. */
  async untilStopped(training: Promise<unknown>): Promise<void> {
    const app = toApp(this.failpoint);
    let ended = false;
    const end = () => (ended = true);
    training.then(end, end);
    const FAILPOINTS = `${this.failpoint}=stop@1`;
    this.process ??= await this.stand.system.startApp(app, `${app}-failing-${runs}`, { FAILPOINTS }, isStopped);
    // Changes of the provocations may be lost with Redis; their calls then fail.
    this.provocations = new Provocations(this.stand.system, `${runs}-${++this.runs}`);
    this.provoking = this.provocations.provoke(this.failpoint).catch(() => undefined);
    await waitUntil(() => ended || this.stopped, { what: this.failpoint, timeoutMs: TRAINER_DEADLINE_MS });
  }

  resume(): void {
    this.process?.resume();
  }

  /** Ends again what Redis may have lost of the calls that led to the failpoint, as their caller does. */
  async endAgain(): Promise<void> {
    await this.provocations?.endAgain();
  }

  kill(): void {
    this.process?.kill('SIGKILL');
  }

  async stop(): Promise<void> {
    await this.process?.stop(0);
  }
}

/** Rejects with all that is known about the job when the trainer has not ended by its deadline. */
function train(
  stand: SetBackSystem,
  { trainer }: Moment,
  job: string,
  prompts: readonly TestPrompt[],
  signal: AbortSignal,
): Promise<TrainerEnd> {
  const deadline = AbortSignal.timeout(TRAINER_DEADLINE_MS);
  const either = AbortSignal.any([deadline, signal]);
  const training = TRAINERS[trainer](stand.system, job, prompts, either).catch(async (error: unknown) => {
    if (!deadline.aborted) throw error;
    throw new Error(`The trainer did not end: ${await stand.describe(job)}`, { cause: error });
  });
  // The caller awaits the training later; until then a failure must not count as unhandled.
  training.catch(() => undefined);
  return training;
}

function sampleCount(prompts: readonly TestPrompt[]): number {
  return prompts.reduce((sum, { samples }) => sum + samples, 0);
}

function isStopped({ pid, running }: ManagedProcess): boolean {
  return running && spawnSync('ps', ['-o', 'state=', '-p', String(pid)], { encoding: 'utf8' }).stdout.startsWith('T');
}
