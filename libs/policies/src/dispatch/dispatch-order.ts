import type { DispatchOrder, GroupSubmission } from '@broomwagon/contracts';
import { expectedLongest, type PromptLengths } from './prompt-lengths';

/** Where the requests of a new group go in the pending queue. */
export interface Dispatch {
  /** Of each sample; those with more go first, and those with as many in the order of arrival. */
  expectedTokens: number;
  /**
   * The length of the prompt is not known: the first sample goes ahead of all that have not begun. When a sample of the
   * group has finished, the pending ones are expected to have as many tokens as the longest one.
   */
  probes: boolean;
}

/**
 * Which requests of a round begin first (`dispatchOrder` of a tail policy): a group is expected to be as long as the
 * longest sample that its prompt is known for, and as long as its budget if nothing is known. Undefined in the order of
 * arrival.
 * @param known what the prompt memory has of its prompt; undefined if it was never seen
 */
export function dispatchOf(
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
