import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FrontierWhatIf, RoundStatus } from '@broomwagon/contracts';
import { boundsOfReplay, type CollectedSamples, type FixedPolicy, roundTime, whatIf } from '@broomwagon/policies';

export type TrainedRound = Pick<RoundStatus, 'roundId' | 'neededGroups' | 'policy' | 'choice' | 'openedAtMs'> & {
  completedAtMs: number;
};
type Choice = Pick<FixedPolicy, 'name' | 'overProvision'>;

/** Policies under which recorded samples are replayed. */
const TRIED: readonly Choice[] = [
  { name: 'wait', overProvision: 1 },
  ...(['regenerate', 'resume', 'drip'] as const).flatMap((name) =>
    [1.25, 1.5].map((overProvision) => ({ name, overProvision })),
  ),
];

/**
 * Replays recorded samples under each policy. Each replay has its own turn of the event loop, since a replay of all
 * groups takes some milliseconds.
 */
export async function replays(
  { groups, longestTokens }: Pick<CollectedSamples, 'groups' | 'longestTokens'>,
  rounds: readonly TrainedRound[],
): Promise<FrontierWhatIf[]> {
  const last = rounds.at(-1);
  if (last === undefined) return [];
  const groupsPerStep = Math.max(...rounds.map(({ neededGroups }) => neededGroups));
  const had = rounds.map(toChoice);
  // A replay of `fixed-concurrency` would need a model of the servers.
  if (had.some(({ name }) => name === 'fixed-concurrency') || groups.size < 2 * groupsPerStep) return [];
  const time = roundTime(
    rounds.flatMap((round) => {
      const tokens = longestTokens.get(round.roundId);
      return tokens === undefined ? [] : [{ longestTokens: tokens, durationMs: 1_000 * computeRoundSeconds(round) }];
    }),
  );
  const samples = { groups: [...groups.values()], groupsPerStep, time };
  const bounds = boundsOfReplay(last.policy);
  const replay = (policies: readonly Choice[]) =>
    whatIf(samples, (step) => ({ ...bounds, ...policies[Math.min(step, policies.length) - 1]! }));
  const recordedSeconds = rounds.reduce((sum, round) => sum + computeRoundSeconds(round), 0) / rounds.length;
  const scale = recordedSeconds / replay(had).stepTime;
  const { name, overProvision } = had.at(-1)!;
  const isAuto = last.policy.name === 'auto';
  const others = TRIED.filter((one) => one.name !== name || one.overProvision !== overProvision);
  const points: FrontierWhatIf[] = [];
  for (const tried of [had, ...(isAuto ? [had.slice(-1)] : []), ...others.map((one) => [one])]) {
    await nextTurn();
    const { stepTime, tokensPerTime, versionSpan: _, ...cost } = replay(tried);
    const isOwn = tried === had;
    const policy = isOwn ? last.policy.name : tried[0]!.name;
    const speed = { stepSeconds: stepTime * scale, tokensPerSecond: tokensPerTime / scale };
    points.push({ policy, overProvision: tried.at(-1)!.overProvision, isOwn, ...speed, ...cost });
  }
  return points;
}

/** Policy that a round had: the given policy, or the choice of `auto` or of an adaptive policy. */
function toChoice({ policy, choice }: TrainedRound): Choice {
  const name = (choice?.auto?.policy ?? policy.name) as Choice['name'];
  return { name, overProvision: name === 'wait' ? 1 : (choice?.overProvision ?? policy.overProvision ?? 1) };
}

export function computeRoundSeconds({
  openedAtMs,
  completedAtMs,
}: Pick<TrainedRound, 'openedAtMs' | 'completedAtMs'>): number {
  return Math.max(1, completedAtMs - openedAtMs) / 1_000;
}
