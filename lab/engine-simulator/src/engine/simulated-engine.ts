import { randomUUID } from 'node:crypto';
import type { PauseMode } from '@broomwagon/contracts';
import { EngineModel, type EngineParameters } from '@broomwagon/models';
import { ContextCache } from './context-cache';
import { findEventEnds } from './event-ends';
import { FaultQueue } from './faults';
import type { LockstepMember } from './lockstep-group';
import type {
  EngineRequest,
  FinishReason,
  Live,
  RequestRow,
  SimulatedEngineOptions,
  TokenSink,
} from './simulated-engine.types';
import { newClock, type WallClock } from './wall-clock';

export type EngineLoad = SimulatedEngine['load'];

const RECENT = 256;

/** One simulated engine: the batching model on a wall clock, with its requests. */
export class SimulatedEngine implements LockstepMember {
  readonly faults = new FaultQueue();
  instanceId = randomUUID();
  /** Version of the weights, as a trainer has named it. */
  weightVersion: string | undefined;
  private readonly cache: ContextCache;
  /** Recorded calls about weights and memory, for tests. */
  readonly controls: { path: string; body: Record<string, unknown> }[] = [];
  startedAtSeconds = Date.now() / 1e3;
  model: EngineModel;
  private parameters: EngineParameters;
  private clock: WallClock;
  private readonly live = new Map<string, Live>();
  private recent: RequestRow[] = [];
  private sequence = 0;
  private gate: 'open' | 'draining' | 'paused' = 'open';
  /** Functions that start requests which arrived during a pause, by key. */
  private readonly heldBack = new Map<string, () => void>();
  /** Resolvers of pauses that wait: called when all requests have ended, or the engine is resumed or reset. */
  private readonly drained: (() => void)[] = [];
  private counted = { received: 0, stop: 0, length: 0, abort: 0 };

  constructor(readonly options: SimulatedEngineOptions) {
    this.cache = new ContextCache(options.parameters.prefillTokensPerSecond, options.kvStore, options.sessionCache);
    this.parameters = options.parameters;
    this.model = new EngineModel(this.parameters);
    this.clock = newClock(options, options.now());
    options.lockstep?.join(this);
  }

  /** Takes a request. Returns a function that removes it, safe to repeat. Throws RangeError if it can never run. */
  submit(request: EngineRequest, sink: TokenSink): () => void {
    const { identity } = request;
    const context = identity.promptTokens + identity.madeTokens;
    if (context + request.budget > this.maxModelTokens) {
      throw new RangeError(
        `This model's maximum context length is ${this.maxModelTokens} tokens. However, you requested ` +
          `${request.budget} output tokens and your prompt contains at least ${context} input tokens.`,
      );
    }
    this.catchUp();
    this.counted.received += 1;
    const left = Math.max(request.minTokens, this.options.lengths.getLength(identity) - identity.madeTokens);
    const key = `${++this.sequence}`;
    const live: Live = {
      ...request,
      key,
      sink,
      target: Math.min(left, request.budget),
      sentTokens: 0,
      sentAtMs: this.options.now(),
      cameWith: this.weightVersion ?? null,
    };
    this.live.set(key, live);
    if (live.target < 1) {
      this.close(live, 'stop');
    } else {
      const start = (): void =>
        this.model.add({
          id: key,
          contextTokens: context,
          prefillTokens: this.cache.prefillTokens(identity, request.cacheSalt, request.sessionId),
          remainingTokens: live.target,
        });
      if (this.isPaused) this.heldBack.set(key, start);
      else start();
    }
    return () => this.drop(key);
  }

  /** Aborts requests by name, with their tokens so far. Returns the number of requests. */
  abort(matches: (name: string) => boolean): number {
    this.catchUp();
    const hit = [...this.live.values()].filter((live) => live.names.some(matches));
    for (const live of hit) this.close(live, 'abort');
    return hit.length;
  }

  get isStopped(): boolean {
    return this.gate === 'paused';
  }

  get isPaused(): boolean {
    return this.gate !== 'open';
  }

  /**
   * Stops generating; `wait` resolves when all running requests have ended. New requests are held back until
   * {@link resume}.
   */
  async pause(mode: PauseMode): Promise<void> {
    this.catchUp();
    if (mode === 'abort') for (const live of this.live.values()) this.close(live, 'abort');
    if (mode !== 'wait' || this.runsNothing || this.gate === 'paused') {
      this.gate = 'paused';
      return;
    }
    this.gate = 'draining';
    await new Promise<void>((resolve) => this.drained.push(resolve));
  }

  resume(): void {
    this.catchUp();
    this.setGate('open');
    for (const start of this.heldBack.values()) start();
    this.heldBack.clear();
  }

  /** @param version name of the weights by the trainer; undefined: the name stays */
  loadWeights(version: string | undefined): void {
    this.cache.changeWeights();
    if (version !== undefined) this.weightVersion = version;
  }

  /** Clears the cache. False, without effect, while requests use the cache. */
  resetPrefixCache(): boolean {
    if (!this.runsNothing) return false;
    this.cache.clear();
    return true;
  }

  /** Sessions that use the prefix cache, and the number of sessions that were closed. */
  get sessions(): { open: string[]; closed: number } {
    return { open: this.cache.openSessions, closed: this.cache.closedSessions };
  }

  closeSession(sessionId: string): void {
    this.cache.closeSession(sessionId);
  }

  get speed(): number {
    return this.clock.speed;
  }

  /** Changes the speed of the engine's own clock, simulated seconds per wall second. */
  setSpeed(speed: number): void {
    this.clock.speed = speed;
  }

  /** Moves simulated time on to the wall clock, and sends generated tokens. */
  tick(): void {
    this.catchUp();
    const now = this.options.now();
    for (const live of this.live.values()) {
      if (now - live.sentAtMs >= this.options.streamMs || live.sentTokens === 0) this.send(live, now);
    }
  }

  /** Longest prompt and response together, tokens; at most the KV cache, since a longer request could never run. */
  get maxModelTokens(): number {
    return Math.min(this.options.maxModelTokens, this.parameters.kvCapacityTokens);
  }

  /** Restarts the engine, without requests or state. @param kvShare size of the new KV cache as a share of the old */
  restart(kvShare = 1): void {
    const kvCapacityTokens = Math.floor(this.parameters.kvCapacityTokens * kvShare);
    this.parameters = { ...this.parameters, kvCapacityTokens };
    // An ended process does not report the ends of its requests.
    for (const key of this.live.keys()) this.drop(key);
    this.reset();
    this.instanceId = randomUUID();
    this.startedAtSeconds = Date.now() / 1e3;
    this.weightVersion = undefined;
  }

  /** Ends everything and forgets all counters, caches and faults. */
  reset(): void {
    for (const live of this.live.values()) this.close(live, 'abort');
    this.model = new EngineModel(this.parameters);
    this.clock = newClock(this.options, this.options.now());
    this.options.lockstep?.reset(newClock(this.options, this.options.now()));
    this.cache.clear();
    this.setGate('open');
    this.faults.clear();
    this.recent = [];
    this.counted = { received: 0, stop: 0, length: 0, abort: 0 };
  }

  get load() {
    const { totals } = this.model;
    return {
      running: this.model.runningCount,
      waiting: this.model.waitingCount + this.heldBack.size,
      kvUse: this.model.kvUse,
      kvTokens: this.model.parameters.kvCapacityTokens,
      preemptions: totals.preemptions,
      tokensMade: Math.round(totals.tokensMade),
      prefillTokens: Math.round(totals.prefillTokens),
      simulatedSeconds: totals.simulatedSeconds,
      busySeconds: totals.busySeconds,
      idleSeconds: totals.simulatedSeconds - totals.busySeconds,
      clockLagShare: (this.options.lockstep ?? this.clock).lagShare,
      requests: { ...this.counted },
      cachedByOtherWeights: this.cache.otherWeights,
    };
  }

  /** Requests in the engine, then the last requests that left it. */
  get table(): RequestRow[] {
    return [...[...this.live.values()].map((live) => this.row(live)), ...this.recent];
  }

  private get runsNothing(): boolean {
    return this.live.size === this.heldBack.size;
  }

  private setGate(gate: 'open' | 'paused'): void {
    this.gate = gate;
    for (const resolve of this.drained.splice(0)) resolve();
  }

  private catchUp(): void {
    const { lockstep, now } = this.options;
    if (lockstep) return lockstep.catchUp(now());
    const seconds = this.clock.step(now(), this.model.runningCount > 0);
    if (this.isStopped) return;
    for (const key of this.model.advance(seconds)) this.finish(key);
  }

  finish(key: string): void {
    const live = this.live.get(key);
    if (live && live.target <= (live.standsAt ?? Infinity))
      this.close(live, live.target < live.budget || this.endsByItself(live) ? 'stop' : 'length');
  }

  /** Whether a response that has used up its budget ends there by itself. */
  private endsByItself(live: Live): boolean {
    return this.options.lengths.getLength(live.identity) - live.identity.madeTokens <= live.budget;
  }

  private send(live: Live, now: number, isLast = false): void {
    const made = this.countMade(live);
    if (made <= live.sentTokens) return;
    const offset = live.identity.madeTokens;
    live.sentAtMs = now;
    for (const to of findEventEnds(live.sentTokens, made, live.streamInterval, isLast)) {
      const from = live.sentTokens;
      live.sentTokens = to;
      live.sink.tokens(offset + from, offset + to);
    }
  }

  private close(live: Live, reason: FinishReason): void {
    this.send(live, this.options.now(), true);
    // A fault may have dropped the request while tokens were sent.
    if (this.leave(live, reason)) live.sink.end(reason);
  }

  /** Removes a request whose client has gone; no end is reported. */
  private drop(key: string): void {
    const live = this.live.get(key);
    if (!live) return;
    this.catchUp();
    this.leave(live, 'abort');
  }

  private leave(live: Live, reason: FinishReason): boolean {
    if (!this.live.has(live.key)) return false;
    const row = this.row(live);
    this.cache.keep(live.identity, row.made);
    this.live.delete(live.key);
    if (!this.heldBack.delete(live.key)) this.model.remove(live.key);
    if (this.gate === 'draining' && this.runsNothing) this.setGate('paused');
    this.counted[reason] += 1;
    this.recent.unshift({ ...row, state: reason });
    this.recent.length = Math.min(this.recent.length, RECENT);
    return true;
  }

  /** Tokens of this attempt. A request that stands still near its end is not in the model. */
  private countMade({ key, target, standsAt }: Live): number {
    return Math.min(this.model.made(key) ?? (standsAt === undefined ? 0 : target), standsAt ?? Infinity);
  }

  private row(live: Live): RequestRow {
    const { madeTokens, promptKey } = live.identity;
    return {
      id: live.names[0] ?? live.key,
      state: this.model.state(live.key) === 'running' ? 'running' : 'waiting',
      promptKey,
      made: madeTokens + this.countMade(live),
      total: madeTokens + live.target,
      streamInterval: live.streamInterval ?? 1,
      weightVersions: [live.cameWith, this.weightVersion ?? null],
    };
  }
}
