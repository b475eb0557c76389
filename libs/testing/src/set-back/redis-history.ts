/** A Redis whose earlier states can be had again. */
export interface RedisHistory {
  /** The address that clients know; it stays the same over every set-back. */
  readonly url: string;
  /**
   * Kills Redis and has one with the state of `lostMs` ago answer under the same address.
   * @returns how many milliseconds were lost: at least `lostMs`, unless the history begins later
   */
  setBack(lostMs: number): Promise<number>;
  stop(): Promise<void>;
}

/** The last of the samples taken before that moment, else the first one. Samples in the order of time. */
export function findSample<Sample extends { atMs: number }>(samples: readonly Sample[], momentMs: number): Sample {
  return samples.findLast(({ atMs }) => atMs <= momentMs) ?? samples[0]!;
}

/** Now, in the clock of all histories. */
export const nowMs = (): number => performance.now();
