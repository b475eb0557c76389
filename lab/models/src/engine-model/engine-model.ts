import { type EngineParameters, secondsOfSteps, stepsInSeconds, stepSeconds } from './engine-parameters';
import type { EngineSequence, EngineTotals, SequenceState } from './engine-model.types';
import { Batch, type BatchMember } from './batch';
import { KvCache } from './kv-cache';

/** Rounding of the continuous step counter, steps. */
const EPSILON = 1e-6;

interface Tracked<Id> extends EngineSequence<Id>, BatchMember {
  state: SequenceState;
  /** Tokens generated up to the last preemption or the end. */
  madeTokens: number;
  /** Step counter at which the sequence would have had no token, while it runs. */
  startStep: number;
}

/**
 * Continuous batching of one engine, in continuous time: every running sequence gains one token per step, a step takes
 * tau(batch, KV). The KV cache is kept as the scheduler of vLLM V1 keeps it: in blocks, with no share held back.
 * Running sequences take the blocks of their next token first; when there is none, the sequence admitted last loses
 * all of its blocks, goes to the head of the queue and is computed again. The queue is admitted first in first out
 * while slots and blocks last, but not in a step that has preempted. Shared prefixes are stored once. Without a prefix
 * cache, a long context is admitted as soon as its first chunk fits, and preempted when the next chunk does not fit.
 *
 * The model is pure and has no clock: time moves only by {@link advance}. Between two events (an end, a preemption, a
 * finished prefill, a chunk) the batch is fixed and the KV cache grows by the batch per step, so the model jumps from
 * event to event, and errors do not add up. An event costs O(log sequences).
 */
export class EngineModel<Id = string> {
  private readonly sequences = new Map<Id, Tracked<Id>>();
  private readonly batch = new Batch<Tracked<Id>>();
  private readonly waiting: Tracked<Id>[] = [];
  /** Step before which no sequence is admitted to the batch; at this step the head of the queue is tried again. */
  private nextAdmissionStep = -Infinity;
  private readonly kv: KvCache;
  private prefillDebtSeconds = 0;
  /** Decode steps so far; a running sequence has generated stepCounter - startStep tokens. */
  private stepCounter = 0;
  private readonly counted: EngineTotals = {
    simulatedSeconds: 0,
    busySeconds: 0,
    tokensMade: 0,
    preemptions: 0,
    prefillTokens: 0,
  };

  /** Throws RangeError if the running sequences could use up all tokens of a chunk. */
  constructor(readonly parameters: EngineParameters) {
    const { chunkTokensWithoutCache = Infinity, slots } = parameters;
    if (chunkTokensWithoutCache <= slots) throw new RangeError('chunkTokensWithoutCache must be more than slots');
    this.kv = new KvCache(parameters.kvCapacityTokens);
  }

  /** Puts a sequence into the queue. Throws RangeError if the sequence could never run or its id is in use. */
  add(sequence: EngineSequence<Id>): void {
    if (this.sequences.has(sequence.id)) throw new RangeError(`sequence ${String(sequence.id)} is already here`);
    if (!(sequence.remainingTokens >= 1)) throw new RangeError('remainingTokens must be at least 1');
    if (sequence.contextTokens > this.parameters.kvCapacityTokens) {
      throw new RangeError(`context of ${sequence.contextTokens} tokens is larger than the KV cache`);
    }
    const tracked = { state: 'waiting' as const, madeTokens: 0, startStep: 0, admission: 0, ...sequence };
    if (!this.hasPrefixCache) tracked.prefix = undefined;
    this.sequences.set(sequence.id, tracked);
    this.waiting.push(tracked);
    this.admit();
  }

  /** Takes a sequence out (abort, or collected after its end). Returns its generated tokens; undefined if unknown. */
  remove(id: Id): number | undefined {
    const sequence = this.sequences.get(id);
    if (!sequence) return undefined;
    this.sequences.delete(id);
    const made = this.madeBy(sequence);
    if (sequence.state === 'running') {
      this.leaveBatch(sequence);
      this.admit();
    } else if (sequence.state === 'waiting') {
      const place = this.waiting.indexOf(sequence);
      if (place === 0) this.kv.dropChunks();
      this.waiting.splice(place, 1);
      this.admit();
    }
    return made;
  }

  /** Moves time on. Returns the sequences that ended, in order; they stay readable until removed. */
  advance(seconds: number): Id[] {
    const finished: Id[] = [];
    let left = seconds;
    this.counted.simulatedSeconds += seconds;
    while (left > 0 && this.batch.size > 0) {
      const used = this.advanceToEvent(left, finished);
      this.counted.busySeconds += used;
      left -= used;
    }
    return finished;
  }

  /**
   * Moves on by decode steps whose time the caller sets, as in lockstep with other engines; at most
   * {@link stepsToNextEvent}. Due prefill counts as paid. Returns the sequences that ended.
   */
  advanceInLockstep(steps: number, seconds: number): Id[] {
    const finished: Id[] = [];
    this.counted.simulatedSeconds += seconds;
    if (this.batch.size === 0) return finished;
    this.counted.busySeconds += seconds;
    this.prefillDebtSeconds = 0;
    this.decode(steps);
    this.settle(finished);
    return finished;
  }

  /** Simulated seconds until the next end, preemption or chunk; Infinity when nothing runs. */
  secondsToNextEvent(): number {
    if (this.batch.size === 0) return Infinity;
    return this.prefillDebtSeconds + secondsOfSteps(this.stepsToNextEvent(), this.stepSeconds, this.stepGrowthSeconds);
  }

  /** Decode steps until the next end, preemption or chunk; Infinity when nothing runs. */
  stepsToNextEvent(): number {
    const admissionStep = this.mayAdmit ? Infinity : this.nextAdmissionStep;
    const steps = Math.max(0, Math.min(this.nextFinishStep(), admissionStep) - this.stepCounter);
    return Math.min(steps, this.kv.stepsToFull);
  }

  /** Keeps the engine from decoding for some seconds, as a transfer of KV does. An idle engine is not affected. */
  stall(seconds: number): void {
    if (this.batch.size > 0) this.prefillDebtSeconds += seconds;
  }

  /** Tokens that a sequence has generated since it was added; undefined if unknown. */
  made(id: Id): number | undefined {
    const sequence = this.sequences.get(id);
    return sequence && this.madeBy(sequence);
  }

  state(id: Id): SequenceState | undefined {
    return this.sequences.get(id)?.state;
  }

  get runningCount(): number {
    return this.batch.size;
  }

  get waitingCount(): number {
    return this.waiting.length;
  }

  /** KV cache in use by sequences, tokens: blocks count as full on average, idle prefixes do not count. */
  get kvTokensInUse(): number {
    return this.kv.tokensInUse;
  }

  /** KV cache in use, 0 to 1. */
  get kvUse(): number {
    return Math.min(1, this.kvTokensInUse / this.parameters.kvCapacityTokens);
  }

  /** Tokens of all contexts that a decode step reads. */
  get contextTokens(): number {
    return this.kv.contextTokens;
  }

  /** Drops all cached prefixes, which new weights make useless. */
  forgetPrefixes(): void {
    this.kv.forgetPrefixes();
  }

  /** Prefill and stalls to be paid before the next decode step, seconds. */
  get debtSeconds(): number {
    return this.prefillDebtSeconds;
  }

  /** Time of the next decode step, seconds. */
  get stepSeconds(): number {
    return stepSeconds(this.parameters, this.batch.size, this.kv.contextTokens);
  }

  /** Difference between the times of a decode step and the step before it, seconds. */
  private get stepGrowthSeconds(): number {
    return this.parameters.stepPerKvTokenSeconds * this.batch.size;
  }

  get totals(): Readonly<EngineTotals> {
    return this.counted;
  }

  /** Advances to the next event, or by `limit` seconds if that is sooner. Returns the seconds used. */
  private advanceToEvent(limit: number, finished: Id[]): number {
    if (this.prefillDebtSeconds > 0) {
      const used = Math.min(limit, this.prefillDebtSeconds);
      this.prefillDebtSeconds = this.prefillDebtSeconds - used < 1e-12 ? 0 : this.prefillDebtSeconds - used;
      return used;
    }
    const steps = this.stepsToNextEvent();
    const seconds = secondsOfSteps(steps, this.stepSeconds, this.stepGrowthSeconds);
    this.decode(seconds > limit ? stepsInSeconds(limit, this.stepSeconds, this.stepGrowthSeconds) : steps);
    // Also if the limit came first: rounding may have moved the counter to the event.
    this.settle(finished);
    return Math.min(seconds, limit);
  }

  private settle(finished: Id[]): void {
    this.finishDue(finished);
    if (!this.preemptWhileFull()) this.admit();
  }

  private decode(steps: number): void {
    this.stepCounter += steps;
    this.kv.grow(steps);
    this.counted.tokensMade += steps * this.batch.size;
  }

  private nextFinishStep(): number {
    return this.batch.nextToFinish()?.finishStep ?? Infinity;
  }

  private finishDue(finished: Id[]): void {
    while (this.nextFinishStep() <= this.stepCounter + EPSILON) {
      const { sequence } = this.batch.nextToFinish()!;
      this.leaveBatch(sequence);
      sequence.state = 'finished';
      finished.push(sequence.id);
    }
  }

  private preemptWhileFull(): boolean {
    const before = this.counted.preemptions;
    if (this.kv.isFull) this.preemptHead();
    while (this.batch.size > 1 && this.kv.isFull) {
      const victim = this.batch.lastAdmitted();
      this.leaveBatch(victim);
      victim.state = 'waiting';
      victim.prefillTokens = victim.contextTokens + victim.madeTokens;
      this.waiting.unshift(victim);
      this.countPreemption();
    }
    return this.counted.preemptions > before;
  }

  /** Drops the computed chunks of the head of the queue, if any. */
  private preemptHead(): void {
    if (this.kv.dropChunks()) this.countPreemption();
  }

  private countPreemption(): void {
    this.counted.preemptions += 1;
    // With a prefix cache nothing fits before another sequence ends.
    if (!this.hasPrefixCache) this.nextAdmissionStep = this.stepCounter + 1;
  }

  private get hasPrefixCache(): boolean {
    return this.parameters.chunkTokensWithoutCache === undefined;
  }

  private get mayAdmit(): boolean {
    return this.stepCounter >= this.nextAdmissionStep - EPSILON;
  }

  private admit(): void {
    while (this.waiting.length > 0 && this.batch.size < this.parameters.slots) {
      const head = this.waiting[0]!;
      const context = head.contextTokens + head.madeTokens;
      if (this.batch.size > 0) {
        if (!this.mayAdmit) return;
        if (!this.kv.fits(context - this.kv.chunkTokens, head.prefix)) return this.admitChunk(head);
      }
      this.waiting.shift();
      this.enterBatch(head, context);
    }
  }

  /** Computes the next chunk of a context that does not fit as a whole; not with a prefix cache or without room. */
  private admitChunk({ prefillTokens }: Tracked<Id>): void {
    const chunk = (this.parameters.chunkTokensWithoutCache ?? Infinity) - this.batch.size;
    if (prefillTokens - this.kv.chunkTokens <= chunk || !this.kv.fits(chunk)) return this.preemptHead();
    this.kv.takeChunk(chunk);
    this.prefill(chunk);
    this.nextAdmissionStep = this.stepCounter + 1;
  }

  private enterBatch(sequence: Tracked<Id>, context: number): void {
    sequence.state = 'running';
    sequence.startStep = this.stepCounter - sequence.madeTokens;
    this.batch.enter(sequence, sequence.startStep + sequence.remainingTokens);
    this.prefill(Math.max(0, sequence.prefillTokens - this.kv.enter(context, sequence.prefix)));
  }

  private prefill(tokens: number): void {
    this.counted.prefillTokens += tokens;
    this.prefillDebtSeconds += tokens / this.parameters.prefillTokensPerSecond;
  }

  /** Keeps whole tokens; a partly generated token is lost with the KV. */
  private leaveBatch(sequence: Tracked<Id>): void {
    sequence.madeTokens = this.wholeTokens(sequence);
    this.batch.leave(sequence);
    this.kv.leave(sequence.contextTokens + (this.stepCounter - sequence.startStep), sequence.prefix);
    if (this.batch.size > 0) return;
    // The chunks of the head of the queue are still to be paid.
    const chunkSeconds = this.kv.chunkTokens / this.parameters.prefillTokensPerSecond;
    this.prefillDebtSeconds = Math.min(this.prefillDebtSeconds, chunkSeconds);
  }

  private madeBy(sequence: Tracked<Id>): number {
    return sequence.state === 'running' ? this.wholeTokens(sequence) : sequence.madeTokens;
  }

  private wholeTokens(sequence: Tracked<Id>): number {
    return Math.min(sequence.remainingTokens, Math.floor(this.stepCounter - sequence.startStep + EPSILON));
  }
}
