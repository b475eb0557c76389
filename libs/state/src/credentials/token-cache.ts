import { hashOfToken } from './credential.store';

/** A revoked token is refused after this at the latest, milliseconds. */
const CACHED_MS = 5_000;
const MAX_CACHED = 10_000;

/** Keeps for some seconds whose tokens were found, by their hashes; unknown tokens too. */
export class TokenCache<Found> {
  private readonly found = new Map<string, { value: Found | undefined; untilMs: number }>();

  /** @throws what `find` throws, which is not kept */
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
