import type { EngineParameters } from './engine-parameters';
import { stepSeconds } from './step-seconds';
import { MinHeap } from './min-heap';

/** Share of the KV cache that admission may fill; the rest is room to grow before somebody is preempted. */
const ADMISSION_KV_SHARE = 0.98;
/** Rounding of the continuous step counter, steps. */
const EPSILON = 1e-6;
/** Stale marks of past admissions that may be in the list before it is built again. */
const MANY_STALE = 64;

/** One sequence to run. */
export interface EngineSequence<Id = string> {
  id: Id;
  /** Tokens of its context when it arrives: prompt, and what earlier attempts made. */
  contextTokens: number;
  /** Of these, how many must be computed; fewer than contextTokens on a prefix cache hit. */
  prefillTokens: number;
  /** Tokens until it ends; at least 1. */
  remainingTokens: number;
}

export type SequenceState = 'waiting' | 'running' | 'finished';

interface Tracked<Id> extends EngineSequence<Id> {
  state: SequenceState;
  /** Tokens made up to its last preemption or its end. */
  madeTokens: number;
  /** While it runs: the step counter at which it would have had no token. */
  startStep: number;
  /** Number of its admission; 0 while it does not run. */
  admission: number;
}

/** A sequence in the batch: expired as soon as it leaves, since then its admission is another one. */
interface Admitted<Id> {
  sequence: Tracked<Id>;
  admission: number;
  finishStep: number;
}

/** Counters since the model was made. */
export interface EngineTotals {
  simulatedSeconds: number;
  /** Part of simulatedSeconds with a sequence running. */
  busySeconds: number;
  tokensMade: number;
  preemptions: number;
  /** Tokens computed before a decode could start: prompts, resumed contexts, and those preempted. */
  prefillTokens: number;
}

/**
 * Continuous batching of one engine as a fluid: every running sequence gains one token per step, a step takes
 * tau(batch, KV). Admission is first in first out while slots and KV allow; when the KV cache is full the sequence
 * admitted last is preempted, goes to the head of the queue and is computed again (vLLM's policy).
 *
 * Pure and without a clock: time moves only by {@link advance}. Between two events (an end, a preemption, a prefill
 * done) the batch is fixed and the KV cache grows by the batch per step, so the time of s steps is the quadratic
 * s * tau + ck * batch * s^2 / 2 and the model jumps from event to event without an error that adds up. An event costs
 * O(log sequences).
 */
export class EngineModel<Id = string> {
  private readonly sequences = new Map<Id, Tracked<Id>>();
  /** In order of admission, stale ones between. */
  private admitted: Admitted<Id>[] = [];
  /** The batch by the step it ends at, stale ones between. */
  private readonly finishing = new MinHeap<Admitted<Id>>(
    (one, other) =>
      one.finishStep < other.finishStep || (one.finishStep === other.finishStep && one.admission < other.admission),
  );
  private readonly waiting: Tracked<Id>[] = [];
  private running = 0;
  private admissions = 0;
  private kvTokens = 0;
  private prefillDebtSeconds = 0;
  /** Decode steps so far; a sequence has made stepCounter - startStep tokens. */
  private stepCounter = 0;
  private readonly counted: EngineTotals = {
    simulatedSeconds: 0,
    busySeconds: 0,
    tokensMade: 0,
    preemptions: 0,
    prefillTokens: 0,
  };

  constructor(readonly parameters: EngineParameters) {}

  /** Puts a sequence into the queue. Throws RangeError for one that could never run, or an id that is in use. */
  add(sequence: EngineSequence<Id>): void {
    if (this.sequences.has(sequence.id)) throw new RangeError(`sequence ${String(sequence.id)} is already here`);
    if (!(sequence.remainingTokens >= 1)) throw new RangeError('remainingTokens must be at least 1');
    if (sequence.contextTokens > this.parameters.kvCapacityTokens) {
      throw new RangeError(`context of ${sequence.contextTokens} tokens is larger than the KV cache`);
    }
    const { id, contextTokens, prefillTokens, remainingTokens } = sequence;
    const tracked: Tracked<Id> = {
      id,
      contextTokens,
      prefillTokens,
      remainingTokens,
      state: 'waiting',
      madeTokens: 0,
      startStep: 0,
      admission: 0,
    };
    this.sequences.set(id, tracked);
    this.waiting.push(tracked);
    this.admit();
  }

  /** Takes a sequence out (abort, or collected after its end). Returns the tokens it made; undefined if unknown. */
  remove(id: Id): number | undefined {
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
  advance(seconds: number): Id[] {
    const finished: Id[] = [];
    let left = seconds;
    this.counted.simulatedSeconds += seconds;
    while (left > 0 && this.running > 0) {
      const used = this.advanceToEvent(left, finished);
      this.counted.busySeconds += used;
      left -= used;
    }
    return finished;
  }

  /**
   * Moves on by decode steps whose time somebody else sets, as in lockstep with other engines; at most
   * {@link stepsToNextEvent}. Prefill that is due counts as paid. Returns the sequences that ended.
   */
  advanceInLockstep(steps: number, seconds: number): Id[] {
    const finished: Id[] = [];
    this.counted.simulatedSeconds += seconds;
    if (this.running === 0) return finished;
    this.counted.busySeconds += seconds;
    this.prefillDebtSeconds = 0;
    this.decode(steps);
    this.settle(finished);
    return finished;
  }

  /** Simulated seconds until the next end or preemption; Infinity when nothing runs. */
  secondsToNextEvent(): number {
    if (this.running === 0) return Infinity;
    return this.prefillDebtSeconds + this.secondsOfSteps(this.stepsToNextEvent());
  }

  /** Decode steps until the next end or preemption; Infinity when nothing runs. */
  stepsToNextEvent(): number {
    const toFinish = Math.max(0, this.nextFinishStep() - this.stepCounter);
    // A sequence that fills the cache alone has no other to make room for it.
    if (this.running < 2) return toFinish;
    const toFull = Math.max(0, (this.parameters.kvCapacityTokens - this.kvTokens) / this.running);
    return Math.min(toFinish, toFull);
  }

  /** Keeps the engine from decoding for a while, as a transfer of KV does, seconds. Nothing to an idle one. */
  stall(seconds: number): void {
    if (this.running > 0) this.prefillDebtSeconds += seconds;
  }

  /** Tokens a sequence has made since it was added; undefined if unknown. */
  made(id: Id): number | undefined {
    const sequence = this.sequences.get(id);
    return sequence && this.madeBy(sequence);
  }

  state(id: Id): SequenceState | undefined {
    return this.sequences.get(id)?.state;
  }

  get runningCount(): number {
    return this.running;
  }

  get waitingCount(): number {
    return this.waiting.length;
  }

  /** KV cache in use, tokens. */
  get kvTokensInUse(): number {
    return this.kvTokens;
  }

  /** KV cache in use, 0 to 1. */
  get kvUse(): number {
    return this.kvTokens / this.parameters.kvCapacityTokens;
  }

  /** Prefill and stalls to be paid before the next decode step, seconds. */
  get debtSeconds(): number {
    return this.prefillDebtSeconds;
  }

  /** Time of the next decode step, seconds. */
  get stepSeconds(): number {
    return stepSeconds(this.parameters, this.running, this.kvTokens);
  }

  get totals(): Readonly<EngineTotals> {
    return this.counted;
  }

  /** Advances to the next event, or by `limit` if that comes first. Returns the seconds used. */
  private advanceToEvent(limit: number, finished: Id[]): number {
    if (this.prefillDebtSeconds > 0) {
      const used = Math.min(limit, this.prefillDebtSeconds);
      this.prefillDebtSeconds = this.prefillDebtSeconds - used < 1e-12 ? 0 : this.prefillDebtSeconds - used;
      return used;
    }
    const steps = this.stepsToNextEvent();
    const seconds = this.secondsOfSteps(steps);
    this.decode(seconds > limit ? this.stepsInSeconds(limit) : steps);
    // Also short of the event: rounding may have brought the counter to it.
    this.settle(finished);
    return Math.min(seconds, limit);
  }

  private settle(finished: Id[]): void {
    this.finishDue(finished);
    this.preemptWhileFull();
    this.admit();
  }

  private decode(steps: number): void {
    this.stepCounter += steps;
    this.kvTokens += steps * this.running;
    this.counted.tokensMade += steps * this.running;
  }

  private secondsOfSteps(steps: number): number {
    const growth = this.parameters.stepPerKvTokenSeconds * this.running;
    return steps * this.stepSeconds + (growth * steps * steps) / 2;
  }

  /** Inverse of {@link secondsOfSteps}, in the form that stays exact for growth = 0. */
  private stepsInSeconds(seconds: number): number {
    const growth = this.parameters.stepPerKvTokenSeconds * this.running;
    const step = this.stepSeconds;
    return (2 * seconds) / (step + Math.sqrt(step * step + 2 * growth * seconds));
  }

  private nextFinishStep(): number {
    for (;;) {
      const next = this.finishing.peek();
      if (next === undefined) return Infinity;
      if (next.sequence.admission === next.admission) return next.finishStep;
      this.finishing.pop();
    }
  }

  private finishDue(finished: Id[]): void {
    while (this.nextFinishStep() <= this.stepCounter + EPSILON) {
      const { sequence } = this.finishing.pop()!;
      this.leaveBatch(sequence);
      sequence.state = 'finished';
      finished.push(sequence.id);
    }
  }

  private preemptWhileFull(): void {
    while (this.running > 1 && this.kvTokens >= this.parameters.kvCapacityTokens - EPSILON) {
      const victim = this.lastAdmitted();
      this.leaveBatch(victim);
      victim.state = 'waiting';
      victim.prefillTokens = victim.contextTokens + victim.madeTokens;
      this.counted.preemptions += 1;
      this.waiting.unshift(victim);
    }
  }

  private lastAdmitted(): Tracked<Id> {
    for (;;) {
      const last = this.admitted.pop()!;
      if (last.sequence.admission === last.admission) return last.sequence;
    }
  }

  private admit(): void {
    const limit = ADMISSION_KV_SHARE * this.parameters.kvCapacityTokens;
    while (this.waiting.length > 0 && this.running < this.parameters.slots) {
      const head = this.waiting[0]!;
      const context = head.contextTokens + head.madeTokens;
      if (this.running > 0 && this.kvTokens + context > limit) return;
      this.waiting.shift();
      this.enterBatch(head, context);
    }
  }

  private enterBatch(sequence: Tracked<Id>, context: number): void {
    sequence.state = 'running';
    sequence.startStep = this.stepCounter - sequence.madeTokens;
    sequence.admission = ++this.admissions;
    const finishStep = sequence.startStep + sequence.remainingTokens;
    const entry = { sequence, admission: sequence.admission, finishStep };
    this.running += 1;
    this.admitted.push(entry);
    this.finishing.push(entry);
    this.kvTokens += context;
    this.counted.prefillTokens += sequence.prefillTokens;
    this.prefillDebtSeconds += sequence.prefillTokens / this.parameters.prefillTokensPerSecond;
  }

  /** Whole tokens are kept; the part of a token in work is lost with the KV. */
  private leaveBatch(sequence: Tracked<Id>): void {
    sequence.madeTokens = this.wholeTokens(sequence);
    sequence.admission = 0;
    this.running -= 1;
    this.kvTokens -= sequence.contextTokens + (this.stepCounter - sequence.startStep);
    if (this.running === 0) {
      this.kvTokens = 0;
      this.prefillDebtSeconds = 0;
      this.admitted.length = 0;
      this.finishing.clear();
    } else if (this.admitted.length > 2 * this.running + MANY_STALE) {
      this.admitted = this.admitted.filter((entry) => entry.sequence.admission === entry.admission);
    }
  }

  private madeBy(sequence: Tracked<Id>): number {
    return sequence.state === 'running' ? this.wholeTokens(sequence) : sequence.madeTokens;
  }

  private wholeTokens(sequence: Tracked<Id>): number {
    return Math.min(sequence.remainingTokens, Math.floor(this.stepCounter - sequence.startStep + EPSILON));
  }
}
