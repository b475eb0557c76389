import type { Schemas } from '@broomwagon/admin-client';

/** Samples of one range of lengths. */
export type SampleRange = Schemas['LengthRange'] & Pick<Schemas['RunningLengths'], 'running'>;

/** Adds running samples to the ranges of samples that ended or were cut; returns all ranges, shortest first. */
export function addRunning(
  lengths: readonly Schemas['LengthRange'][],
  running: readonly Schemas['RunningLengths'][] = [],
): SampleRange[] {
  const ranges = new Map(lengths.map((range): [number, SampleRange] => [range.fromTokens, { ...range, running: 0 }]));
  for (const range of running) {
    const { fromTokens } = range;
    ranges.set(fromTokens, { finished: 0, unfinished: 0, ...ranges.get(fromTokens), ...range });
  }
  return [...ranges.values()].toSorted((one, other) => one.fromTokens - other.fromTokens);
}
