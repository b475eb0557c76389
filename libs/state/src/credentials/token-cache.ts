import { hashOfToken } from './credential.store';

/** How long a result is cached, milliseconds. A revoked token is refused after this time at the latest. */
const CACHED_MS = 5_000;
const MAX_CACHED = 10_000;

/** Caches results of token searches for some seconds, by token hash; unknown tokens too. */
export class TokenCache<Found> {
  private readonly found = new Map<string, { value: Found | undefined; untilMs: number }>();

  /** @throws errors of `find`, which are not cached */
  async find(token: string, find: () => Promise<Found | undefined>): Promise<Found | undefined> {
    const hash = hashOfToken(token);
    const cached = this.found.get(hash);
    if (cached !== undefined && cached.untilMs > Date.now()) return cached.value;
    const value = await find();
    if (this.found.size >= MAX_CACHED) this.found.clear();
    this.found.set(hash, { value, untilMs: Date.now() + CACHED_MS });
    return value;
  }
}
