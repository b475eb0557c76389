import { binTokens, lengthBin } from '../ledger/length-bins';

/** A trained group as a job keeps it for `auto`. */
export interface RecordedGroup {
  /** Lengths of the samples, tokens, each rounded to the middle of a bin of the stored histogram. */
  lengths: number[];
  /**
   * When the group was accepted, milliseconds since the round was opened; undefined if the group was started in an
   * earlier round.
   */
  finishedMs?: number;
}

/** Maximum samples that are kept of a round. Of a larger round, every n-th group is kept. */
export const RECORDED_SAMPLES = 2_048;

const GOLDEN_RATIO = 0.618033988749895;

/**
 * Whether a group is kept for `auto`. The first kept position differs from step to step, so that the slowest groups are
 * kept as often as all others.
 * @param position number of the accepted group in its round, from 0
 */
export function isRecorded(
  position: number,
  samples: number,
  { step, neededGroups }: { step: number; neededGroups: number },
): boolean {
  const everyNth = Math.ceil((neededGroups * Math.max(1, samples)) / RECORDED_SAMPLES);
  return position % everyNth === Math.floor(((step * GOLDEN_RATIO) % 1) * everyNth);
}

/** Writes a group in its stored form, `MS:BIN,BIN;`. libs/state/src/ledger/trained-ledger.lua writes the same form. */
export function recordGroup({ lengths, finishedMs }: RecordedGroup): string {
  return `${finishedMs === undefined ? '' : Math.floor(finishedMs)}:${lengths.map(lengthBin).join(',')};`;
}

/** Reads all groups of a stored text, except groups without samples (Redis had lost them). */
export function readGroups(text: string): RecordedGroup[] {
  return text
    .split(';')
    .filter((group) => /\d$/.test(group))
    .map((group) => {
      const [finishedMs, bins = ''] = group.split(':');
      const lengths = bins.split(',').map((bin) => binTokens(Number(bin)));
      return { lengths, ...(finishedMs === '' ? {} : { finishedMs: Number(finishedMs) }) };
    });
}
