import type { TrainedGroup } from '@broomwagon/contracts';
import type { ResultLine } from './result-line';

/** A trained step whose results a trainer holds. */
export interface HeldStep {
  step: number;
  groups: readonly TrainedGroup[];
}

/** Groups of these result lines, in their order. */
export function listTrainedGroups(lines: readonly ResultLine[]): TrainedGroup[] {
  const samples = new Map<string, number>();
  for (const { promptId } of lines) samples.set(promptId, (samples.get(promptId) ?? 0) + 1);
  return [...samples].map(([groupId, count]) => ({ groupId, samples: count }));
}
