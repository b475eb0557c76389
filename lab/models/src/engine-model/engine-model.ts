import { type EngineParameters, secondsOfSteps, stepsInSeconds, stepSeconds } from './engine-parameters';
import type { EngineSequence, EngineTotals, SequenceState } from './engine-model.types';
import { Batch, type BatchMember } from './batch';
import { KvCache } from './kv-cache';
import type { SharedPrefix } from './kv-blocks';
import { MixedPrefill } from './mixed-prefill';

/** Rounding of the continuous step counter, steps. */
const EPSILON = 1e-6;

interface Tracked<Id> extends EngineSequence<Id>, BatchMember {
  state: SequenceState;
  /** Tokens generated up to the last preemption or the end. */
  madeTokens: number;
  /** Value of `stepCounter` minus the tokens generated so far; constant while the sequence decodes. */
  startStep: number;
  /** Value of {@link EngineTotals.simulatedSeconds} when its decode began first. */
  firstDecodeAt?: number;
  isPreempted: boolean;
}

/**
 * Continuous batching of one engine, in continuous time: every running sequence gains one token per step, a step takes
 * tau(batch, KV). The KV cache is kept as the scheduler of vLLM V1 keeps it: in blocks, with no share held back.
 * Running sequences take the blocks of their next token first; when there is none, the sequence admitted last loses
 * all of its blocks, goes to the head of the queue and is computed again. The queue is admitted first in first out
 * while slots and blocks last, but not in a step that has preempted. Shared prefixes are stored once, and the contexts of
 * sessions stay in the prefix cache until their blocks are needed. Without a prefix cache, a long context is admitted as
 * soon as its first chunk fits, and preempted when the next chunk does not fit. With `stepTokens`, contexts are computed
 * in chunks beside the decode, one after the other; otherwise the decode waits for each prefill.
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
  private readonly mixed: MixedPrefill<Tracked<Id>>;
  private prefillDebtSeconds = 0;
  /** Decode steps so far; a running sequence has generated stepCounter - startStep tokens. */
  private stepCounter = 0;
  private readonly counted: EngineTotals = {
    simulatedSeconds: 0,
    busySeconds: 0,
    tokensMade: 0,
    preemptions: 0,
    prefillTokens: 0,
    hitTokens: 0,
  };
  /** Part of the present {@link advance} that is still to come, seconds. */
  private secondsAhead = 0;

  /** Throws RangeError if the running sequences could use up all tokens of a chunk. */
  constructor(readonly parameters: EngineParameters) {
    const { chunkTokensWithoutCache = Infinity, slots } = parameters;
    if (chunkTokensWithoutCache <= slots) throw new RangeError('chunkTokensWithoutCache must be more than slots');
    this.kv = new KvCache(parameters.kvCapacityTokens);
    this.mixed = new MixedPrefill(parameters);
  }

  /** Puts a sequence into the queue. Throws RangeError if the sequence could never run or its id is in use. */
  add(sequence: EngineSequence<Id>): void {
    if (this.sequences.has(sequence.id)) throw new RangeError(`sequence ${String(sequence.id)} is already here`);
    if (!(sequence.remainingTokens >= 1)) throw new RangeError('remainingTokens must be at least 1');
    if (sequence.contextTokens > this.parameters.kvCapacityTokens) {
      throw new RangeError(`context of ${sequence.contextTokens} tokens is larger than the KV cache`);
    }
    const tracked = {
      state: 'waiting' as const,
      madeTokens: 0,
      startStep: 0,
      admission: 0,
      isPreempted: false,
      ...sequence,
    };
    if (!this.hasPrefixCache) tracked.prefixes = tracked.contextKey = undefined;
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
    while (left > 0 && this.runningCount > 0) {
      const used = this.advanceToEvent(left, finished);
      this.counted.busySeconds += used;
      left -= used;
    }
    this.secondsAhead = 0;
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
    if (this.runningCount === 0) return Infinity;
    return this.prefillDebtSeconds + secondsOfSteps(this.stepsToNextEvent(), this.stepSeconds, this.stepGrowthSeconds);
  }

  /** Decode steps until the next end, preemption or chunk; Infinity when nothing runs. */
  stepsToNextEvent(): number {
    const admissionStep = this.mayAdmit ? Infinity : this.nextAdmissionStep;
    const steps = Math.max(0, Math.min(this.nextFinishStep(), admissionStep) - this.stepCounter);
    return Math.min(steps, this.kv.stepsToFull, this.mixed.stepsToEnd(this.batch.size));
  }

  /** Keeps the engine from decoding for some seconds, as a transfer of KV does. An idle engine is not affected. */
  stall(seconds: number): void {
    if (this.runningCount > 0) this.prefillDebtSeconds += seconds;
  }

  /** Tokens that a sequence has generated since it was added; undefined if unknown. */
  made(id: Id): number | undefined {
    const sequence = this.sequences.get(id);
    return sequence && this.madeBy(sequence);
  }

  state(id: Id): SequenceState | undefined {
    return this.sequences.get(id)?.state;
  }

  /** Seconds since the first token of a sequence was begun; undefined if it has none, or is unknown. */
  secondsSinceDecode(id: Id): number | undefined {
    const firstDecodeAt = this.sequences.get(id)?.firstDecodeAt;
    return firstDecodeAt === undefined ? undefined : this.counted.simulatedSeconds - firstDecodeAt;
  }

  get runningCount(): number {
    return this.batch.size + (this.mixed.sequence ? 1 : 0);
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

  /** Drops all cached contexts and prefixes that no sequence holds, since new weights make them useless. */
  forgetIdle(): void {
    this.kv.forgetIdle();
  }

  /** Drops the cached context of a session that has ended, as SGLang does for `close_session`. */
  closeSession(contextKey: SharedPrefix['key']): void {
    this.kv.drop(contextKey);
  }

  /** Prefill and stalls to be paid before the next decode step, seconds. */
  get debtSeconds(): number {
    return this.prefillDebtSeconds;
  }

  /** Time of the next step, seconds. */
  get stepSeconds(): number {
    const { size } = this.batch;
    return stepSeconds(this.parameters, size, this.kv.contextTokens) + this.mixed.stepSeconds(size);
  }

  /** Difference between the times of a step and the step before it, seconds. */
  private get stepGrowthSeconds(): number {
    const { size } = this.batch;
    return this.parameters.stepPerKvTokenSeconds * size + this.mixed.stepGrowthSeconds(size);
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
    this.secondsAhead = limit - Math.min(seconds, limit);
    this.decode(seconds > limit ? stepsInSeconds(limit, this.stepSeconds, this.stepGrowthSeconds) : steps);
    // Also if the limit came first: rounding may have moved the counter to the event.
    this.settle(finished);
    return Math.min(seconds, limit);
  }

  private settle(finished: Id[]): void {
    this.finishDue(finished);
    if (this.mixed.isDone) this.beginDecode(this.mixed.end());
    if (!this.preemptWhileFull()) this.admit();
  }

  private decode(steps: number): void {
    this.stepCounter += steps;
    this.mixed.compute(steps, this.batch.size);
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
    while (this.runningCount > 1 && this.kv.isFull) {
      const victim = this.mixed.sequence ?? this.batch.lastAdmitted();
      this.leaveBatch(victim);
      victim.state = 'waiting';
      victim.prefillTokens = victim.contextTokens + victim.madeTokens;
      victim.isPreempted = true;
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
    // The chunks of one prefill use up the tokens of each step until their last.
    while (this.waiting.length > 0 && this.batch.size < this.parameters.slots && !this.mixed.sequence) {
      const head = this.waiting[0]!;
      const context = head.contextTokens + head.madeTokens;
      if (this.batch.size > 0) {
        if (!this.mayAdmit) return;
        if (!this.kv.fits(context - this.kv.chunkTokens, head)) return this.admitChunk(head);
      }
      this.waiting.shift();
      this.enterBatch(head, context);
    }
  }

  /** Computes the next chunk of a context that does not fit as a whole; not with a prefix cache or without room. */
  private admitChunk({ prefillTokens }: Tracked<Id>): void {
    const chunk = (this.parameters.chunkTokensWithoutCache ?? Infinity) - this.batch.size;
    if (prefillTokens - this.kv.chunkTokens <= chunk || !this.kv.fits(chunk, {})) return this.preemptHead();
    this.kv.takeChunk(chunk);
    this.prefill(chunk);
    this.nextAdmissionStep = this.stepCounter + 1;
  }

  private enterBatch(sequence: Tracked<Id>, context: number): void {
    sequence.state = 'running';
    const found = Math.min(sequence.prefillTokens, this.kv.enter(context, sequence));
    const missing = sequence.prefillTokens - found;
    if (!sequence.isPreempted) this.counted.hitTokens += found;
    if (this.mixed.isOn && missing > 0) {
      this.counted.prefillTokens += missing;
      this.kv.setPending(context);
      this.mixed.begin(sequence, context, missing);
    } else {
      this.prefill(missing);
      this.beginDecode(sequence);
    }
  }

  private beginDecode(sequence: Tracked<Id>): void {
    this.kv.setPending(0);
    sequence.startStep = this.stepCounter - sequence.madeTokens;
    sequence.firstDecodeAt ??= this.counted.simulatedSeconds - this.secondsAhead + this.prefillDebtSeconds;
    this.batch.enter(sequence, sequence.startStep + sequence.remainingTokens);
  }

  private prefill(tokens: number): void {
    this.counted.prefillTokens += tokens;
    this.prefillDebtSeconds += tokens / this.parameters.prefillTokensPerSecond;
  }

  /** Keeps whole tokens; a partly generated token is lost with the KV. */
  private leaveBatch(sequence: Tracked<Id>): void {
    if (this.mixed.sequence === sequence) {
      const context = sequence.contextTokens + sequence.madeTokens;
      const missing = this.mixed.leftTokens;
      this.mixed.end();
      this.counted.prefillTokens -= missing;
      this.kv.setPending(0);
      this.kv.leave(context, sequence, context - missing);
      return;
    }
    sequence.madeTokens = this.wholeTokens(sequence);
    this.batch.leave(sequence);
    const context = sequence.contextTokens + (this.stepCounter - sequence.startStep);
    this.kv.leave(context, sequence, sequence.contextTokens + sequence.madeTokens);
    if (this.batch.size > 0) return;
    // The chunks of the head of the queue are still to be paid.
    const chunkSeconds = this.kv.chunkTokens / this.parameters.prefillTokensPerSecond;
    this.prefillDebtSeconds = Math.min(this.prefillDebtSeconds, chunkSeconds);
  }

  private madeBy(sequence: Tracked<Id>): number {
    const decodes = sequence.state === 'running' && sequence !== this.mixed.sequence;
    return decodes ? this.wholeTokens(sequence) : sequence.madeTokens;
  }

  private wholeTokens(sequence: Tracked<Id>): number {
    return Math.min(sequence.remainingTokens, Math.floor(this.stepCounter - sequence.startStep + EPSILON));
  }
}
