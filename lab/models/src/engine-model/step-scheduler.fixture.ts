import { type EngineParameters, stepSeconds } from './engine-parameters';
import type { EngineSequence } from './engine-model.types';
import { KV_BLOCK_TOKENS, sharedTokens } from './kv-blocks';

interface Scheduled extends EngineSequence {
  made: number;
  computed: number;
  /** Names of the blocks that the sequence holds; equal names mean an equal block. */
  blocks: string[];
  isPreempted: boolean;
}

interface Step {
  /** Tokens that may still be computed. */
  budget: number;
  /** Time of the tokens of prefills. */
  seconds: number;
  hasPreempted: boolean;
}

/**
 * The scheduler of vLLM V1 with its prefix cache, step by step and block by block: the oracle of the engine model. A
 * free block keeps its content and its name until it is used again; the block freed longest ago is used first.
 */
export class StepScheduler {
  readonly totals = { prefillTokens: 0, hitTokens: 0, preemptions: 0, simulatedSeconds: 0 };
  private readonly waiting: Scheduled[] = [];
  private running: Scheduled[] = [];
  /** Number of sequences that hold a block. */
  private readonly holders = new Map<string, number>();
  /** Free blocks with content, freed longest ago first. */
  private readonly free = new Set<string>();
  private readonly count: number;

  constructor(private readonly parameters: EngineParameters) {
    this.count = Math.floor(parameters.kvCapacityTokens / KV_BLOCK_TOKENS);
  }

  get isIdle(): boolean {
    return this.running.length + this.waiting.length === 0;
  }

  add(sequence: EngineSequence): void {
    this.waiting.push({ ...sequence, made: 0, computed: 0, blocks: [], isPreempted: false });
  }

  /** Runs one step. Returns the ids of the sequences that ended. */
  step(): string[] {
    const step = { budget: this.parameters.stepTokens!, seconds: 0, hasPreempted: false };
    const decoding = this.running.filter((one) => one.computed >= one.contextTokens + one.made - 1);
    for (const one of this.running.slice()) {
      if (!this.running.includes(one)) continue;
      const tokens = Math.min(step.budget, one.contextTokens + one.made - one.computed);
      while (this.running.includes(one) && !this.allocate(one, one.computed + tokens)) {
        this.preemptLast();
        step.hasPreempted = true;
      }
      if (this.running.includes(one)) this.compute(step, one, tokens, !decoding.includes(one));
    }
    this.admit(step);
    const kvTokens = decoding.reduce((sum, one) => sum + one.computed, 0);
    this.totals.simulatedSeconds += step.seconds + stepSeconds(this.parameters, decoding.length, kvTokens);
    return this.sample();
  }

  private preemptLast(): void {
    const victim = this.running.pop()!;
    this.release(victim);
    victim.computed = 0;
    victim.isPreempted = true;
    this.waiting.unshift(victim);
    this.totals.preemptions += 1;
  }

  private compute(step: Step, one: Scheduled, tokens: number, isPrefill: boolean): void {
    if (isPrefill) {
      const { prefillTokensPerSecond: speed, prefillPerContextTokenSeconds: attention = 0 } = this.parameters;
      step.seconds += tokens * (1 / speed + attention * (one.computed + tokens / 2));
      this.totals.prefillTokens += tokens;
    }
    one.computed += tokens;
    step.budget -= tokens;
  }

  private admit(step: Step): void {
    while (this.waiting.length > 0 && this.running.length < this.parameters.slots) {
      const head = this.waiting[0]!;
      const total = head.contextTokens + head.made;
      const names = this.nameBlocks(head, total);
      const needed = names.filter((name) => !this.holders.has(name)).length;
      const fits = this.running.length === 0 || needed <= this.count - this.holders.size;
      if (step.hasPreempted || step.budget === 0 || !fits) return;
      let hits = 0;
      while (hits < Math.floor((total - 1) / KV_BLOCK_TOKENS) && this.isCached(names[hits]!)) hits += 1;
      head.computed = hits * KV_BLOCK_TOKENS;
      if (!head.isPreempted) this.totals.hitTokens += head.computed;
      const tokens = Math.min(step.budget, total - head.computed);
      if (!this.allocate(head, head.computed + tokens)) throw new Error('a sequence alone must fit');
      this.compute(step, head, tokens, true);
      this.running.push(this.waiting.shift()!);
    }
  }

  private sample(): string[] {
    const finished: string[] = [];
    for (const one of this.running) {
      if (one.computed < one.contextTokens + one.made) continue;
      one.made += 1;
      if (one.made < one.remainingTokens) continue;
      this.release(one);
      finished.push(one.id);
    }
    this.running = this.running.filter(({ id }) => !finished.includes(id));
    return finished;
  }

  private nameBlocks({ prefixes = [], contextKey, id }: EngineSequence, tokens: number): string[] {
    const names: string[] = [];
    for (const prefix of prefixes) {
      const count = sharedTokens(prefix) / KV_BLOCK_TOKENS;
      for (let index = 0; index < count; index++) names.push(`${prefix.key} ${index}`);
    }
    const all = Math.ceil(tokens / KV_BLOCK_TOKENS);
    while (names.length < all) names.push(`${contextKey ?? id} ${names.length}`);
    return names.slice(0, all);
  }

  private isCached(name: string): boolean {
    return this.holders.has(name) || this.free.has(name);
  }

  private allocate(one: Scheduled, tokens: number): boolean {
    if (Math.ceil(tokens / KV_BLOCK_TOKENS) === one.blocks.length) return true;
    const names = this.nameBlocks(one, tokens);
    const more = names.slice(one.blocks.length);
    const used = more.filter((name) => !this.holders.has(name)).length;
    if (this.holders.size + used > this.count) return false;
    for (const name of more) {
      this.free.delete(name);
      this.holders.set(name, (this.holders.get(name) ?? 0) + 1);
    }
    one.blocks = names;
    for (const name of this.free) {
      if (this.holders.size + this.free.size <= this.count) break;
      this.free.delete(name);
    }
    return true;
  }

  /** Frees the blocks from the last to the first; a block that is not full has no name to be found by. */
  private release(one: Scheduled): void {
    const full = Math.floor(one.computed / KV_BLOCK_TOKENS);
    for (let index = one.blocks.length - 1; index >= 0; index--) {
      const name = one.blocks[index]!;
      const left = this.holders.get(name)! - 1;
      if (left > 0) {
        this.holders.set(name, left);
      } else {
        this.holders.delete(name);
        if (index < full) this.free.add(name);
      }
    }
    one.blocks = [];
  }
}
