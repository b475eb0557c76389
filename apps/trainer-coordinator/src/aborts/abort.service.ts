import { Injectable } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { LIMITS, type AbortRequestsReply, type AbortRequestsRequest, type PoolName } from '@broomwagon/contracts';
import { failpoint } from '@broomwagon/platform';
import { AbortStore, PoolDirectory, type AbortResultsPage } from '@broomwagon/state';
import { CoordinatorConfig } from '../coordinator.config';
import { AbortSweepService } from './abort-sweep.service';
import { selectorOf } from './abort-selector';

const DEFAULT_REASON = 'abort';
/** Pauses between two looks at the confirmations of a page, milliseconds. */
const FIRST_LOOK_MS = 1;
const LONGEST_LOOK_MS = 100;
const GROWTH = 1.5;

/** Aborts: the intent is recorded before anything is done about it, so that it survives this process. */
@Injectable()
export class AbortService {
  constructor(
    private readonly aborts: AbortStore,
    private readonly pools: PoolDirectory,
    private readonly sweeper: AbortSweepService,
    private readonly config: CoordinatorConfig,
  ) {}

  /** @throws BroomwagonError VALIDATION_FAILED, UNAVAILABLE: then the intent may be recorded; repeating is safe */
  async abort(pool: PoolName, body: AbortRequestsRequest): Promise<AbortRequestsReply> {
    const { abortId } = body;
    const selector = selectorOf(body);
    // Its confirmations are followed by upkeep, which goes through the pools of the directory.
    await this.pools.add(pool);
    const reason = body.reason ?? DEFAULT_REASON;
    const { selecting } = await this.aborts.begin(pool, {
      abortId,
      selector,
      reason,
      keptMs: this.config.abortKeptMs,
    });
    await failpoint('coordinator.abort.after-intent');
    if (selecting) await this.sweeper.select(pool, abortId);
    const { results, cursor } = await this.confirmed(pool, body);
    return { abortId, results, cursor };
  }

  /** The page when all of it is confirmed, or as it stands when the caller will wait no longer. */
  private async confirmed(pool: PoolName, body: AbortRequestsRequest): Promise<AbortResultsPage> {
    const page = { abortId: body.abortId, cursor: body.cursor ?? 0, limit: body.limit ?? LIMITS.page };
    const endsAtMs = Date.now() + (body.waitMs ?? 0);
    for (let pauseMs = FIRST_LOOK_MS; ; pauseMs = Math.min(GROWTH * pauseMs, LONGEST_LOOK_MS)) {
      const results = await this.aborts.results(pool, page);
      const leftMs = endsAtMs - Date.now();
      if (results.aborting === 0 || leftMs <= 0) return results;
      await delay(Math.min(pauseMs, leftMs));
    }
  }
}
