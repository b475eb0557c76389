/** Time for which an abort of an unknown id is remembered, milliseconds. */
const REMEMBERED_MS = 60_000;
/** Maximum remembered aborts of one key; a further abort removes the oldest abort of the key. */
const MAX_REMEMBERED = 1_024;
/** Key under which aborts of every key are kept. */
const EVERY_KEY = '*';

/**
 * Aborts that have arrived before their requests. Each key has its own list, so that no key removes aborts of another
 * key.
 */
export class AbortMemory {
  /** For each key, the times at which aborts are forgotten, by id, oldest first. */
  private readonly keys = new Map<string, Map<string, number>>();

  /** @param tokenId absent: an abort of every key */
  add(tokenId: string | undefined, id: string): void {
    this.removeExpired();
    const key = tokenId ?? EVERY_KEY;
    const ids = this.keys.get(key) ?? new Map<string, number>();
    this.keys.set(key, ids);
    ids.delete(id);
    ids.set(id, performance.now() + REMEMBERED_MS);
    if (ids.size > MAX_REMEMBERED) ids.delete(ids.keys().next().value!);
  }

  /** @returns whether the abort was remembered */
  remove(tokenId: string | undefined, id: string): boolean {
    const ids = this.keys.get(tokenId ?? EVERY_KEY);
    const untilMs = ids?.get(id) ?? 0;
    ids?.delete(id);
    return untilMs > performance.now();
  }

  private removeExpired(): void {
    const now = performance.now();
    for (const [key, ids] of this.keys) {
      for (const [id, untilMs] of ids) {
        if (untilMs > now) break;
        ids.delete(id);
      }
      if (ids.size === 0) this.keys.delete(key);
    }
  }
}
