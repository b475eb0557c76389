import { Injectable } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { ServerStore } from '@broomwagon/state';

/**
 * Time for which a context length is kept, milliseconds: a submission has many pages, and engines change seldom.
 */
const KEPT_MS = 2_000;

/** Largest context of the engines of each pool. */
@Injectable()
export class ContextLengthService {
  private readonly known = new Map<PoolName, { tokens: number | undefined; untilMs: number }>();

  constructor(private readonly servers: ServerStore) {}

  /** The largest context; undefined if a ready server does not report its context, or if no server is ready. */
  async largest(pool: PoolName): Promise<number | undefined> {
    const known = this.known.get(pool);
    if (known !== undefined && performance.now() < known.untilMs) return known.tokens;
    const tokens = await this.read(pool);
    this.known.set(pool, { tokens, untilMs: performance.now() + KEPT_MS });
    return tokens;
  }

  private async read(pool: PoolName): Promise<number | undefined> {
    let largest: number | undefined;
    for await (const { servers } of this.servers.pages('list', pool)) {
      for (const { state, capabilities } of servers) {
        if (state !== 'ready') continue;
        if (capabilities?.maxModelTokens === undefined) return undefined;
        largest = Math.max(largest ?? 0, capabilities.maxModelTokens);
      }
    }
    return largest;
  }
}
