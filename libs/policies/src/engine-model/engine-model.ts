import { stepSeconds, type EngineParameters } from './engine-parameters';

/** Share of the KV cache that admission may fill; the rest is room to grow before somebody is preempted. */
const ADMISSION_KV_SHARE = 0.98;
/** Rounding of the continuous step counter, steps. */
const EPSILON = 1e-6;

/** One sequence to run. */
export interface EngineSequence {
  id: string;
  /** Tokens of its context when it arrives: prompt, and what earlier attempts made. */
  contextTokens: number;
  /** Of these, how many must be computed; fewer than contextTokens on a prefix cache hit. */
  prefillTokens: number;
  /** Tokens until it ends; at least 1. */
  remainingTokens: number;
}

export type SequenceState = 'waiting' | 'running' | 'finished';

interface Tracked extends EngineSequence {
  state: SequenceState;
  /** Tokens made up to its last preemption or its end. */
  madeTokens: number;
  /** While it runs: the step counter at which it would have had no token. */
  startStep: number;
  preemptions: number;
}

/** Counters since the model was made. */
export interface EngineTotals {
  simulatedSeconds: number;
  /** Part of simulatedSeconds with a sequence running. */
  busySeconds: number;
  tokensMade: number;
  preemptions: number;
}

/**
 * Continuous batching of one engine as a fluid: every running sequence gains one token per step, a step takes
 * tau(batch, KV). Admission is first in first out while slots and KV allow; when the KV cache is full the sequence
 * admitted last is preempted, goes to the head of the queue and is computed anew (vLLM's policy).
 *
 * Pure and without a clock: time moves only by {@link advance}. Between two events (an end, a preemption, a prefill
 * done) the batch is fixed and the KV cache grows by the batch per step, so the time of s steps is the quadratic
 * s * tau + ck * batch * s^2 / 2 and the model jumps from event to event without an error that adds up.
 */
export class EngineModel {
  private readonly sequences = new Map<string, Tracked>();
  /** In order of admission. */
  private readonly running: Tracked[] = [];
  private readonly waiting: Tracked[] = [];
  private kvTokens = 0;
  private prefillSeconds = 0;
  /** Decode steps so far; a sequence has made stepCounter - startStep tokens. */
  private stepCounter = 0;
  private nextFinishStep = Infinity;
  private readonly counted: EngineTotals = { simulatedSeconds: 0, busySeconds: 0, tokensMade: 0, preemptions: 0 };

  constructor(readonly parameters: EngineParameters) {}

  /** Puts a sequence into the queue. Throws RangeError for one that could never run, or an id that is in use. */
  add(sequence: EngineSequence): void {
    if (this.sequences.has(sequence.id)) throw new RangeError(`sequence ${sequence.id} is already here`);
    if (!(sequence.remainingTokens >= 1)) throw new RangeError('remainingTokens must be at least 1');
    if (sequence.contextTokens > this.parameters.kvCapacityTokens) {
      throw new RangeError(`context of ${sequence.contextTokens} tokens is larger than the KV cache`);
    }
    const tracked: Tracked = { ...sequence, state: 'waiting', madeTokens: 0, startStep: 0, preemptions: 0 };
    this.sequences.set(sequence.id, tracked);
    this.waiting.push(tracked);
    this.admit();
  }

  /** Takes a sequence out (abort, or collected after its end). Returns the tokens it made; undefined if unknown. */
  remove(id: string): number | undefined {
    const sequence = this.sequences.get(id);
    if (!sequence) return undefined;
    this.sequences.delete(id);
    const made = this.madeBy(sequence);
    if (sequence.state === 'running') {
      this.leaveBatch(sequence);
      this.admit();
    } else if (sequence.state === 'waiting') {
      this.waiting.splice(this.waiting.indexOf(sequence), 1);
      this.admit();
    }
    return made;
  }

  /** Moves time on. Returns the sequences that ended, in order; they stay readable until removed. */
  advance(seconds: number): string[] {
    const finished: string[] = [];
    let left = seconds;
    this.counted.simulatedSeconds += seconds;
    while (left > 0 && this.running.length > 0) {
      const used = this.advanceToEvent(left, finished);
      this.counted.busySeconds += used;
      left -= used;
    }
    return finished;
  }

  /** Simulated seconds until the next end, preemption or prefill done; Infinity when nothing runs. */
  secondsToNextEvent(): number {
    if (this.running.length === 0) return Infinity;
    if (this.prefillSeconds > 0) return this.prefillSeconds;
    return this.secondsOfSteps(this.stepsToNextEvent());
  }

  /** Tokens a sequence has made since it was added; undefined if unknown. */
  made(id: string): number | undefined {
    const sequence = this.sequences.get(id);
    return sequence && this.madeBy(sequence);
  }

  state(id: string): SequenceState | undefined {
    return this.sequences.get(id)?.state;
  }

  get runningCount(): number {
    return this.running.length;
  }

  get waitingCount(): number {
    return this.waiting.length;
  }

  /** KV cache in use, 0 to 1. */
  get kvUse(): number {
    return this.kvTokens / this.parameters.kvCapacityTokens;
  }

  /** Time of the next decode step, seconds. */
  get stepSeconds(): number {
    return stepSeconds(this.parameters, this.running.length, this.kvTokens);
  }

  get totals(): Readonly<EngineTotals> {
    return this.counted;
  }

  /** Advances to the next event, or by `limit` if that comes first. Returns the seconds used. */
  private advanceToEvent(limit: number, finished: string[]): number {
    if (this.prefillSeconds > 0) {
      const used = Math.min(limit, this.prefillSeconds);
      this.prefillSeconds = this.prefillSeconds - used < 1e-12 ? 0 : this.prefillSeconds - used;
      return used;
    }
    const steps = this.stepsToNextEvent();
    const seconds = this.secondsOfSteps(steps);
    if (seconds > limit) {
      this.decode(this.stepsInSeconds(limit));
      return limit;
    }
    this.decode(steps);
    this.finishDue(finished);
    this.preemptWhileFull();
    this.admit();
    return seconds;
  }

  private decode(steps: number): void {
    this.stepCounter += steps;
    this.kvTokens += steps * this.running.length;
    this.counted.tokensMade += steps * this.running.length;
  }

  private stepsToNextEvent(): number {
    const toFinish = Math.max(0, this.nextFinishStep - this.stepCounter);
    // A sequence that fills the cache alone has nobody to make room for it.
    if (this.running.length < 2) return toFinish;
    const toFull = Math.max(0, (this.parameters.kvCapacityTokens - this.kvTokens) / this.running.length);
    return Math.min(toFinish, toFull);
  }

  private secondsOfSteps(steps: number): number {
    const growth = this.parameters.stepPerKvTokenSeconds * this.running.length;
    return steps * this.stepSeconds + (growth * steps * steps) / 2;
  }

  /** Inverse of {@link secondsOfSteps}, in the form that stays exact for growth = 0. */
  private stepsInSeconds(seconds: number): number {
    const growth = this.parameters.stepPerKvTokenSeconds * this.running.length;
    const step = this.stepSeconds;
    return (2 * seconds) / (step + Math.sqrt(step * step + 2 * growth * seconds));
  }

  private finishDue(finished: string[]): void {
    if (this.nextFinishStep > this.stepCounter + EPSILON) return;
    const due = this.running.filter((sequence) => this.finishStep(sequence) <= this.stepCounter + EPSILON);
    for (const sequence of due) {
      this.leaveBatch(sequence);
      sequence.state = 'finished';
      finished.push(sequence.id);
    }
  }

  private preemptWhileFull(): void {
    while (this.running.length > 1 && this.kvTokens >= this.parameters.kvCapacityTokens - EPSILON) {
      const victim = this.running[this.running.length - 1]!;
      this.leaveBatch(victim);
      victim.state = 'waiting';
      victim.prefillTokens = victim.contextTokens + victim.madeTokens;
      victim.preemptions += 1;
      this.counted.preemptions += 1;
      this.waiting.unshift(victim);
    }
  }

  private admit(): void {
    const limit = ADMISSION_KV_SHARE * this.parameters.kvCapacityTokens;
    while (this.waiting.length > 0 && this.running.length < this.parameters.slots) {
      const head = this.waiting[0]!;
      const context = head.contextTokens + head.madeTokens;
      if (this.running.length > 0 && this.kvTokens + context > limit) return;
      this.waiting.shift();
      head.state = 'running';
      head.startStep = this.stepCounter - head.madeTokens;
      this.running.push(head);
      this.kvTokens += context;
      this.prefillSeconds += head.prefillTokens / this.parameters.prefillTokensPerSecond;
      this.nextFinishStep = Math.min(this.nextFinishStep, this.finishStep(head));
    }
  }

  /** Whole tokens are kept; the part of a token in work is lost with the KV. */
  private leaveBatch(sequence: Tracked): void {
    this.running.splice(this.running.indexOf(sequence), 1);
    this.kvTokens -= sequence.contextTokens + (this.stepCounter - sequence.startStep);
    if (this.running.length === 0) {
      this.kvTokens = 0;
      this.prefillSeconds = 0;
    }
    this.nextFinishStep = Infinity;
    for (const other of this.running) this.nextFinishStep = Math.min(this.nextFinishStep, this.finishStep(other));
    sequence.madeTokens = this.wholeTokens(sequence);
  }

  private finishStep(sequence: Tracked): number {
    return sequence.startStep + sequence.remainingTokens;
  }

  private madeBy(sequence: Tracked): number {
    return sequence.state === 'running' ? this.wholeTokens(sequence) : sequence.madeTokens;
  }

  private wholeTokens(sequence: Tracked): number {
    return Math.min(sequence.remainingTokens, Math.floor(this.stepCounter - sequence.startStep + EPSILON));
  }
}
