import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { PartialStore, type PartialClaimReply } from '@broomwagon/state';
import { GatewayConfig } from '../gateway.config';
import { GatewayMetrics } from '../gateway-metrics';
import { buildContinuation } from './continuation';
import type { Generation } from './generation';
import { buildPartial, joinPieces, SavedPieces, type Partial } from './partial-pieces';
import type { GenerationEnd, WholeResponse } from './response-parts';

/** Time for which saved tokens are kept for a client that repeats its request, milliseconds. */
const KEPT_MS = 600_000;
/** Maximum size of a saved answer to a passed request, bytes. */
const MAX_ANSWER_BYTES = 4 * 1_048_576;

/** Most saves in one write. */
const PAGE = 128;

/**
 * Saves the tokens of generations whose clients may repeat the request by an id. If this replica is killed, the replica
 * that gets the repeat continues from the last save.
 */
@Injectable()
export class PartialSaves implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(PartialSaves.name);
  /** Running generations. `isYoung`: it has begun since the last time at which generations were saved. */
  private readonly saved = new Map<Generation, { count: number; isYoung: boolean; pieces: SavedPieces }>();
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
  begin(generation: Generation, { saved, pieces = [] }: Pick<PartialClaimReply, 'saved' | 'pieces'>): void {
    const partial = saved === undefined ? undefined : joinPieces(saved as Partial, pieces as Partial[]);
    const isSame = partial?.digest === generation.repeat!.digest;
    if (!isSame || partial.whole === undefined) {
      if (!generation.input.isContinued) return;
      this.saved.set(generation, { count: 0, isYoung: true, pieces: new SavedPieces(generation) });
    }
    if (partial === undefined || !isSame) return;
    generation.restore(partial);
    this.metrics.restored.inc(generation.tokens.count);
  }

  /**
   * Saves the tokens a last time, for the replica that continues.
   * @returns whether the tokens are kept. Never throws.
   */
  async keep(generation: Generation): Promise<boolean> {
    if (!this.saved.has(generation) || generation.tokens.isComplete) return false;
    await this.save([generation]);
    return true;
  }

  /** Saves the tokens of all generations now. Never throws. */
  async saveAll(): Promise<void> {
    const due = [...this.saved].filter(([{ tokens }, { count }]) => tokens.count !== count);
    await Promise.all(splitPages(due.map(([generation]) => generation)).map((page) => this.save(page)));
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
    this.saved.get(generation)?.pieces.beginAgain();
    await this.write([{ generation, partial: { ...buildPartial(generation), promptTokenIds, whole } }]);
    return true;
  }

  end(generation: Generation): void {
    this.saved.delete(generation);
  }

  /** Saves one page of generations after the other, so that thousands are not saved at the same moment. */
  private saveLater(): void {
    this.timer = setTimeout(() => {
      void (async () => {
        const due: Generation[] = [];
        for (const [generation, progress] of this.saved) {
          if (!progress.isYoung && generation.tokens.count !== progress.count) due.push(generation);
          progress.isYoung = false;
        }
        for (const page of splitPages(due)) await this.save(page);
        this.saveLater();
      })();
    }, this.config.partialSaveIntervalMs).unref();
  }

  private async save(generations: readonly Generation[]): Promise<void> {
    const saves: Save[] = [];
    for (const generation of generations) {
      const { tokens, report } = generation;
      const progress = this.saved.get(generation);
      if (progress === undefined || tokens.isComplete || tokens.count === progress.count) continue;
      if (buildContinuation(generation) === undefined) continue;
      progress.count = tokens.count;
      if (tokens.allIds === undefined) continue;
      const { partial, piece } = progress.pieces.next();
      const promptTokenIds = tokens.message && report.promptTokenIds;
      saves.push({ generation, partial: Object.assign(partial, { promptTokenIds }), piece });
    }
    await this.write(saves);
  }

  private async write(saves: readonly Save[]): Promise<void> {
    if (saves.length === 0) return;
    const expiresMs = Math.max(KEPT_MS, this.config.rejoinMs);
    const errors = await this.store.save(
      this.config.pool,
      saves.map(({ generation, partial, piece }) => ({
        identity: toSaveIdentity(generation)!,
        partial: JSON.stringify(partial),
        piece,
      })),
      expiresMs,
    );
    for (const [index, { generation }] of saves.entries()) {
      const error = errors[index];
      if (error === undefined) continue;
      this.logger.warn({ requestId: generation.id, err: error }, 'Tokens were not saved');
      const progress = this.saved.get(generation);
      progress?.pieces.beginAgain();
      if (progress) progress.count = 0;
    }
  }
}

interface Save {
  generation: Generation;
  partial: Partial;
  piece?: number;
}

function splitPages(generations: readonly Generation[]): Generation[][] {
  const pages: Generation[][] = [];
  for (let start = 0; start < generations.length; start += PAGE) pages.push(generations.slice(start, start + PAGE));
  return pages;
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
