const TAIL_SHARE = 0.1;

/** Number of requests that were done at a moment. */
export interface DoneSample {
  atMs: number;
  done: number;
}

/**
 * Time of the last tenth of a round's requests, seconds: from the first moment at which nine tenths were seen done to
 * the end. As exact as the samples are dense.
 * @param samples in order of time
 */
export function tailSeconds(samples: readonly DoneSample[], endedAtMs: number): number {
  const total = samples.reduce((most, { done }) => Math.max(most, done), 0);
  const from = samples.find(({ done }) => done >= total * (1 - TAIL_SHARE));
  return from === undefined ? 0 : Math.max(0, endedAtMs - from.atMs) / 1_000;
}

/**
 * Mean and longest time from the start of a round to the end of a sample that it finished, seconds; waiting counts. As
 * exact as the samples are dense.
 * @param samples in order of time
 */
export function generationSeconds(
  samples: readonly DoneSample[],
  startedAtMs: number,
): { mean: number; slowest: number } {
  let [done, sum, slowest] = [0, 0, 0];
  for (const look of samples) {
    if (look.done <= done) continue;
    slowest = (look.atMs - startedAtMs) / 1_000;
    sum += (look.done - done) * slowest;
    ({ done } = look);
  }
  return { mean: done === 0 ? 0 : sum / done, slowest };
}
