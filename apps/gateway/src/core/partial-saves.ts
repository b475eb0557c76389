import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { PartialStore } from '@broomwagon/state';
import { GatewayConfig } from '../gateway.config';
import { GatewayMetrics } from '../gateway-metrics';
import { buildContinuation } from './continuation';
import type { Generation } from './generation';
import type { GenerationEnd, RestoredTokens, WholeResponse } from './response-parts';

/** Time for which saved tokens are kept for a client that repeats its request, milliseconds. */
const KEPT_MS = 600_000;
/** Maximum size of a saved answer to a passed request, bytes. */
const MAX_ANSWER_BYTES = 4 * 1_048_576;

interface Partial extends RestoredTokens {
  /** SHA-256 of the body. */
  digest: string;
}

/**
 * Saves the tokens of generations whose clients may repeat the request by an id. If this replica is killed, the replica
 * that gets the repeat continues from the last save.
 */
@Injectable()
export class PartialSaves implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(PartialSaves.name);
  /** Running generations, with the number of their saved tokens. */
  private readonly saved = new Map<Generation, number>();
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly store: PartialStore,
    private readonly metrics: GatewayMetrics,
    private readonly config: GatewayConfig,
  ) {}

  onApplicationBootstrap(): void {
    this.saveLater();
  }

  onApplicationShutdown(): void {
    clearTimeout(this.timer);
  }

  /**
   * Gives a new generation the tokens that another replica has saved, and begins to save the tokens of the generation.
   */
  begin(generation: Generation, saved: unknown): void {
    const partial = saved as Partial | undefined;
    const isSame = partial?.digest === generation.repeat!.digest;
    if (!isSame || partial.whole === undefined) {
      if (!generation.input.isContinued) return;
      this.saved.set(generation, 0);
    }
    if (!isSame) return;
    generation.restore(partial);
    this.metrics.restored.inc(generation.tokens.count);
  }

  /**
   * Saves the tokens a last time, for the replica that continues.
   * @returns whether the tokens are kept. Never throws.
   */
  async keep(generation: Generation): Promise<boolean> {
    if (!this.saved.has(generation) || generation.tokens.isComplete) return false;
    await this.save(generation);
    return true;
  }

  /**
   * Saves a response that has ended, for the replica that answers a repeat. A response with routed experts, or with a
   * larger passed answer, is not saved: the repeat generates the response again.
   * @returns whether the response is kept. Never throws.
   */
  async keepWhole(generation: Generation, end: GenerationEnd): Promise<boolean> {
    const { tokens, calls, report, recording } = generation;
    if (end.reason === 'error' || generation.experts !== undefined) return false;
    const answer = toSavedAnswer(generation);
    if (generation.answer !== undefined && answer === undefined) return false;
    const { serverId, model } = calls;
    const { cachedTokens, fields: engineFields, promptTokenIds } = report;
    const whole = { end, tokenCount: tokens.count, serverId, model, cachedTokens, engineFields, recording, answer };
    await this.write(generation, { ...buildPartial(generation), promptTokenIds, whole });
    return true;
  }

  end(generation: Generation): void {
    this.saved.delete(generation);
  }

  /** Saves one generation after the other, so that thousands of generations are not saved at the same moment. */
  private saveLater(): void {
    this.timer = setTimeout(() => {
      void (async () => {
        for (const [generation, count] of this.saved) {
          if (generation.tokens.count === count || !this.saved.has(generation)) continue;
          this.saved.set(generation, generation.tokens.count);
          await this.save(generation);
        }
        this.saveLater();
      })();
    }, this.config.partialSaveIntervalMs).unref();
  }

  private async save(generation: Generation): Promise<void> {
    const { tokens, report } = generation;
    if (tokens.isComplete || buildContinuation(generation) === undefined) return;
    const partial = buildPartial(generation);
    if (partial.tokenIds === undefined) return;
    await this.write(generation, { ...partial, ...(tokens.message && { promptTokenIds: report.promptTokenIds }) });
  }

  private async write(generation: Generation, partial: Partial): Promise<void> {
    const expiresMs = Math.max(KEPT_MS, this.config.rejoinMs);
    try {
      await this.store.save(this.config.pool, toSaveIdentity(generation)!, JSON.stringify(partial), expiresMs);
    } catch (error) {
      this.logger.warn({ requestId: generation.id }, `Tokens were not saved: ${(error as Error).message}`);
    }
  }
}

function buildPartial({ tokens, repeat, report }: Generation): Partial {
  const { spans, isVersionReported, promptTokens } = report;
  const { allIds: tokenIds, allLogprobs: logprobs, text, message, names } = tokens;
  const more = { message: message?.saved, names: names?.from(0) };
  return { digest: repeat!.digest, tokenIds, text, logprobs, promptTokens, spans, isVersionReported, ...more };
}

/** The answer in its saved form; undefined if the request is not passed on, or its answer is too large. */
function toSavedAnswer({ answer }: Generation): WholeResponse['answer'] {
  if (answer === undefined) return undefined;
  const { pieces, ...others } = answer;
  const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
  return bytes > MAX_ANSWER_BYTES ? undefined : { ...others, body: Buffer.concat(pieces).toString('base64') };
}

/** Identity of a request, the same in all replicas; undefined if repeats are not recognized by an id. */
export function toSaveIdentity({ repeat, tokenId }: Generation): string | undefined {
  return repeat === undefined || repeat.kind === 'session' ? undefined : `${tokenId}\n${repeat.key}`;
}
