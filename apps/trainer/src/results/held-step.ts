import type { TrainedGroup } from '@broomwagon/contracts';
import type { ResultLine } from './result-line';

/** A step that a trainer has trained and holds the results of. */
export interface HeldStep {
  step: number;
  groups: readonly TrainedGroup[];
}

/** The groups that have these results, in their order. */
export function trainedGroupsOf(lines: readonly ResultLine[]): TrainedGroup[] {
  const samples = new Map<string, number>();
  for (const { promptId } of lines) samples.set(promptId, (samples.get(promptId) ?? 0) + 1);
  return [...samples].map(([groupId, count]) => ({ groupId, samples: count }));
}
