import type { EngineParameters } from './engine-parameters';

/** Rounding of the tokens that are left, tokens. */
const EPSILON = 1e-6;

/**
 * The prefill of one sequence in chunks beside the decode of the others: each step computes `stepTokens` tokens, one for
 * each decoding sequence and the rest of the context. Nothing happens here unless the engine has `stepTokens`.
 */
export class MixedPrefill<Member> {
  private computed?: { sequence: Member; contextTokens: number; leftTokens: number };

  /** Throws RangeError if the decoding sequences could use up all tokens of a step. */
  constructor(private readonly parameters: EngineParameters) {
    const { stepTokens, slots, chunkTokensWithoutCache } = parameters;
    if (stepTokens === undefined) return;
    if (stepTokens <= slots) throw new RangeError('stepTokens must be more than slots');
    if (chunkTokensWithoutCache !== undefined) throw new RangeError('stepTokens needs an engine with a prefix cache');
  }

  get isOn(): boolean {
    return this.parameters.stepTokens !== undefined;
  }

  /** The sequence whose context is computed. */
  get sequence(): Member | undefined {
    return this.computed?.sequence;
  }

  get leftTokens(): number {
    return this.computed?.leftTokens ?? 0;
  }

  get isDone(): boolean {
    return this.computed !== undefined && this.computed.leftTokens <= EPSILON;
  }

  /** Begins with a context whose last `leftTokens` are missing. */
  begin(sequence: Member, contextTokens: number, leftTokens: number): void {
    this.computed = { sequence, contextTokens, leftTokens };
  }

  /** Ends the prefill, complete or not. Returns its sequence; there must be one. */
  end(): Member {
    const { sequence } = this.computed!;
    this.computed = undefined;
    return sequence;
  }

  compute(steps: number, decoding: number): void {
    if (this.computed) this.computed.leftTokens -= steps * this.chunkTokens(decoding);
  }

  /** Steps until the context is computed; Infinity without a prefill. */
  stepsToEnd(decoding: number): number {
    return this.computed ? Math.max(0, this.computed.leftTokens / this.chunkTokens(decoding)) : Infinity;
  }

  /** Time that the chunk adds to the next step, seconds: attention of a token reads all tokens before it. */
  stepSeconds(decoding: number): number {
    if (!this.computed) return 0;
    const { contextTokens, leftTokens } = this.computed;
    const { prefillTokensPerSecond, prefillPerContextTokenSeconds = 0 } = this.parameters;
    const perToken = 1 / prefillTokensPerSecond + prefillPerContextTokenSeconds * (contextTokens - leftTokens);
    return this.chunkTokens(decoding) * perToken;
  }

  /** Difference between the time that a chunk adds and the time that the chunk before it added, seconds. */
  stepGrowthSeconds(decoding: number): number {
    if (!this.computed) return 0;
    return (this.parameters.prefillPerContextTokenSeconds ?? 0) * this.chunkTokens(decoding) ** 2;
  }

  private chunkTokens(decoding: number): number {
    return this.parameters.stepTokens! - decoding;
  }
}
