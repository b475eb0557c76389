/**
 * The latest stamp of each pool in any reply to this process (rounds/generation.lua). The next read of the pool sends
 * it, which detects a Redis that has lost transitions since then.
 */
export class SeenStamps {
  private readonly latest = new Map<string, string>();

  of(pool: string): string | undefined {
    return this.latest.get(pool);
  }

  note(pool: string, stamp: string): void {
    const known = this.latest.get(pool);
    if (known !== undefined && isLater(known, stamp)) return;
    this.latest.set(pool, stamp);
  }
}

/** Replies may overtake each other; stamps of two generations cannot be compared. */
function isLater(stamp: string, other: string): boolean {
  const [generation, sequence] = stamp.split('.');
  const [otherGeneration, otherSequence] = other.split('.');
  return generation === otherGeneration && Number(sequence) > Number(otherSequence);
}
