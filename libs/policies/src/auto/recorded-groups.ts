import { binTokens, lengthBin } from '../ledger/length-bins';

/** A trained group as a job keeps it for `auto`. */
export interface RecordedGroup {
  /** Lengths of its samples, tokens; each is the middle of a bin. */
  lengths: number[];
  /** When it was accepted, milliseconds since its round was opened; undefined if it was started in an earlier round. */
  finishedMs?: number;
}

/** Samples that are kept of a round: groups in equal distances, if it has more. */
export const RECORDED_SAMPLES = 2_048;

const GOLDEN_RATIO = 0.618033988749895;

/**
 * Whether the group that a round has accepted as number `position`, from 0, is kept. The first that is kept differs
 * from step to step, spread evenly, so that the slowest groups are as likely to be kept as all others.
 */
export function isRecorded(
  position: number,
  samples: number,
  { step, neededGroups }: { step: number; neededGroups: number },
): boolean {
  const everyNth = Math.ceil((neededGroups * Math.max(1, samples)) / RECORDED_SAMPLES);
  return position % everyNth === Math.floor(((step * GOLDEN_RATIO) % 1) * everyNth);
}

/** A group as it is stored: `MS:BIN,BIN;`. libs/state/src/ledger/trained-ledger.lua writes the same. */
export function recordGroup({ lengths, finishedMs }: RecordedGroup): string {
  return `${finishedMs === undefined ? '' : Math.floor(finishedMs)}:${lengths.map(lengthBin).join(',')};`;
}

/** All groups of a stored text, except groups whose samples Redis had lost. */
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
