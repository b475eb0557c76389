/**
 * The latest stamp of each pool in any reply to this process (rounds/generation.lua). The next read of the pool sends
 * the stamp, and so detects that Redis has lost transitions since.
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

/** False for stamps of two generations, which have no order. Replies may arrive out of order. */
function isLater(stamp: string, other: string): boolean {
  const [generation, sequence] = stamp.split('.');
  const [otherGeneration, otherSequence] = other.split('.');
  return generation === otherGeneration && Number(sequence) > Number(otherSequence);
}
