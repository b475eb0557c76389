import { idOfPart, type PoolEvent } from '@broomwagon/contracts';

/** Maximum recorded groups; later ones are left out. A replay of them takes some milliseconds. */
export const MAX_GROUPS = 8_192;

/** Samples of a job, as its events report them. */
export interface Recording {
  /** Lengths of the samples of each whole group, tokens; groups in the order of their submission. */
  groups: number[][];
  /** Number of groups of which some samples are unknown. */
  partialGroups: number;
  /** Longest attempt that finished a sample, by round, tokens. */
  longestTokens: Map<string, number>;
}

interface Group {
  queuedAtMs: number;
  /** Lengths by sample; a sample that was thrown away and generated again has its last length. */
  lengths: Map<string, number>;
}

/** Collects samples from events of one job, in any order of groups. */
export class RecordedSamples {
  private readonly groups = new Map<string, Group>();
  private readonly longestTokens = new Map<string, number>();

  add(event: PoolEvent): void {
    if (event.type !== 'request.finished' && event.type !== 'attempt.ended') return;
    const [, part, sample] = event.requestId.split('/');
    const groupId = idOfPart(part!);
    const { queuedAtMs = event.atMs } = event;
    const group = this.groups.get(groupId) ?? { queuedAtMs, lengths: new Map<string, number>() };
    if (this.groups.size >= MAX_GROUPS && !this.groups.has(groupId)) return;
    group.queuedAtMs = Math.min(group.queuedAtMs, queuedAtMs);
    this.groups.set(groupId, group);
    if (event.type !== 'request.finished') return;
    group.lengths.set(sample!, event.tokens);
    const longest = this.longestTokens.get(event.roundId) ?? 0;
    this.longestTokens.set(event.roundId, Math.max(longest, event.attemptTokens));
  }

  recording(): Recording {
    const entries = [...this.groups];
    const samples = Math.max(0, ...entries.map(([, { lengths }]) => lengths.size));
    const whole = entries
      .filter(([, { lengths }]) => lengths.size === samples && samples > 0)
      .sort(([one, a], [other, b]) => a.queuedAtMs - b.queuedAtMs || byName(one, other));
    return {
      groups: whole.map(([, { lengths }]) => [...lengths.values()]),
      partialGroups: entries.length - whole.length,
      longestTokens: this.longestTokens,
    };
  }
}

/** Orders p2 before p10. */
function byName(one: string, other: string): number {
  return one.localeCompare(other, 'en', { numeric: true });
}
