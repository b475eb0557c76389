import { lengthBin, type LedgerCounters } from '@broomwagon/policies';

/** Tokens of a sample that one weight version generated. */
export interface VersionedTokens {
  weightVersion: number;
  tokenCount: number;
}

/** A sample that a step was trained on. */
export interface TrainedSample {
  segments: readonly VersionedTokens[];
  /** Weight version of the round that trains it. */
  weightVersion: number;
  /** Whether the sample ended at its token budget, not by itself. */
  isAtCap: boolean;
}

/** A sample that ended, or was cut for good, and will not be trained: its tokens are wasted. */
export interface WastedSample {
  tokens: number;
  reason: string;
  /** How the sample ended; `cut`: it would have become longer. */
  end: 'stopped' | 'cap' | 'cut';
}

/** Counters of a trained sample. */
export function countTrained({ segments, weightVersion, isAtCap }: TrainedSample): LedgerCounters {
  const tokens = segments.reduce((sum, segment) => sum + segment.tokenCount, 0);
  const made = segments.filter(({ tokenCount }) => tokenCount > 0).map((segment) => segment.weightVersion);
  const old = segments.filter((segment) => segment.weightVersion < weightVersion);
  const bin = lengthBin(tokens);
  return {
    'trained.samples': 1,
    'trained.tokens': tokens,
    'trained.offPolicyTokens': old.reduce((sum, segment) => sum + segment.tokenCount, 0),
    [`trained.length.${bin}`]: 1,
    [`trained.span.${Math.max(0, weightVersion - Math.min(weightVersion, ...made))}`]: 1,
    ...counted(isAtCap, 'trained.atCap'),
    ...ended(bin, isAtCap),
  };
}

/** Counters of a lost sample, or of one lost draw of a sample. */
export function countWasted({ tokens, reason, end }: WastedSample): LedgerCounters {
  const waste = tokens > 0 ? { [`waste.${reason}`]: tokens } : {};
  return { ...waste, ...(end === 'cut' ? countOpen(tokens) : ended(lengthBin(tokens), end === 'cap')) };
}

/** Counters of a sample that has not ended, by its length so far. Not for storage: the sample counts when it ends. */
export function countOpen(tokens: number): LedgerCounters {
  return tokens > 0 ? { [`cut.length.${lengthBin(tokens)}`]: 1 } : {};
}

/** Counters of a trained group that was cut so many times. */
export function countGroup(cuts: number): LedgerCounters {
  return { [`groups.cuts.${cuts}`]: 1 };
}

/** Counters of a trained step, from the mean length of its samples in tokens, rounded to whole tokens. */
export function countBatch(meanTokens: number): LedgerCounters {
  const mean = Math.round(meanTokens);
  return { 'batch.count': 1, 'batch.sum': mean, 'batch.squares': mean * mean };
}

function ended(bin: number, isAtCap: boolean): LedgerCounters {
  return { [`ended.length.${bin}`]: 1, ...counted(isAtCap, `ended.atCap.${bin}`) };
}

function counted(isTrue: boolean, name: string): LedgerCounters {
  return isTrue ? { [name]: 1 } : {};
}
