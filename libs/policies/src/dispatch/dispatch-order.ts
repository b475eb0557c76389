import type { DispatchOrder, GroupSubmission } from '@broomwagon/contracts';
import { expectedLongest, type PromptLengths } from './prompt-lengths';

/** Place of the requests of a new group in the pending queue. */
export interface Dispatch {
  /** Expected length of each sample. Longer samples go first, and equal ones in the order of arrival. */
  expectedTokens: number;
  /**
   * The first sample is a probe, because no length of the prompt is known: it goes before all requests that have not
   * started. After a sample of the group has finished, its pending samples are expected to be as long as the longest
   * one.
   */
  probes: boolean;
}

/**
 * Which requests of a round start first (`dispatchOrder` of a tail policy). Every sample is expected to be as long as
 * {@link expectedLongest} predicts, or as its budget if no length of the prompt is known.
 * @param known lengths in the prompt memory; undefined for a prompt that was never seen
 * @returns undefined in the order of arrival
 */
export function computeDispatch(
  order: DispatchOrder,
  { samples, maxTokens }: Pick<GroupSubmission, 'samples' | 'maxTokens'>,
  known: PromptLengths | undefined,
): Dispatch | undefined {
  if (order === 'arrival') return undefined;
  return {
    expectedTokens: known === undefined ? maxTokens : expectedLongest(known, samples, maxTokens),
    probes: order === 'probe-first' && known === undefined,
  };
}
