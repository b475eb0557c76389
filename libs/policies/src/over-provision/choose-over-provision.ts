import type { OverProvisionWhy } from '@broomwagon/contracts';
import { tailShares, type GroupLengths } from './group-lengths';
import { roundTime, type RoundTime } from './round-time';

/** Measurements and limits from which the over-provision of one domain is chosen. */
export interface OverProvisionInput {
  /** Groups of the domain that a step needs. */
  neededGroups: number;
  /** Group lengths of the last steps. */
  lengths: GroupLengths;
  rounds: readonly RoundTime[];
  /** Over-provision of the last round, or the initial value. */
  current: number;
  /** Mean tokens of all samples of an accepted group; 0: not known. */
  tokensPerGroup: number;
  /** Tokens that the KV caches of the fleet hold; 0: not known. */
  fleetKvTokens: number;
}

/**
 * Margin in standard deviations, because too little costs far more than too much (measured with a tail share of 0.39:
 * 1.25 makes steps 1.12 times as fast, 2.0 makes them 1.65 times as fast).
 */
const SAFETY = 1;
const HIGHEST = 1.75;
const STEP = 1 / 16;
const FEWEST_GROUPS = 32;
const ROUNDING = 1e-9;
/** Tried knees (lengths at which a short round ends), as quantiles of the longest sample of a group. */
const QUANTILES = Array.from({ length: 50 }, (_, index) => 0.5 + index / 100);

/**
 * Computes the smallest over-provision e with which a round gets its P groups although a share f of the launched groups
 * is cut: e x P (1 - f) - z sqrt(e x P f (1 - f)) >= P, solved for e.
 */
export function overProvisionFor(tailShare: number, neededGroups: number, safety = SAFETY): number {
  const stay = neededGroups * (1 - tailShare);
  const deviation = safety * Math.sqrt(stay * tailShare);
  const root = (deviation + Math.sqrt(deviation ** 2 + 4 * stay * neededGroups)) / (2 * stay);
  return root ** 2;
}

/**
 * Chooses the over-provision e of a domain: tries knees (lengths at which a short round ends), and takes the knee whose
 * rounds have the least mean time when 1 / (e - 1) short rounds fill the queue for one long round. The over-provision
 * changes by at most 1/16 a step, is at most 1.75, and fits into the KV caches.
 */
export function chooseOverProvision(input: OverProvisionInput): { overProvision: number; why: OverProvisionWhy } {
  const { shares, groups, censoredGroups, longest } = tailShares(input.lengths);
  const why: OverProvisionWhy = { groups, censored: censoredGroups };
  if (groups < FEWEST_GROUPS) return { overProvision: input.current, why: { ...why, limitedBy: 'too-few' } };

  const time = roundTime(input.rounds);
  const longRoundTime = time(longest);
  // Without over-provision, every round waits for the longest sample.
  let best = { wanted: 1, mean: longRoundTime, knee: longest, tailShare: 0, shortRoundTime: longRoundTime };
  for (const quantile of QUANTILES) {
    const knee = shares.find(({ share }) => share <= 1 - quantile + ROUNDING);
    if (knee === undefined || knee.share < ROUNDING) break;
    const wanted = overProvisionFor(knee.share, input.neededGroups);
    if (wanted <= 1) continue;
    const shortRounds = 1 / (wanted - 1);
    const shortRoundTime = time(knee.tokens);
    const mean = (shortRounds * shortRoundTime + longRoundTime) / (shortRounds + 1);
    if (mean < best.mean) best = { wanted, mean, knee: knee.tokens, tailShare: knee.share, shortRoundTime };
  }

  const { value, limitedBy } = limit(best.wanted, input);
  return {
    overProvision: value,
    why: {
      ...why,
      kneeTokens: best.knee,
      tailShare: best.tailShare,
      wanted: best.wanted,
      shortRoundTime: best.shortRoundTime,
      longRoundTime,
      ...(limitedBy === undefined ? {} : { limitedBy }),
    },
  };
}

function limit(
  wanted: number,
  { current, neededGroups, tokensPerGroup, fleetKvTokens }: OverProvisionInput,
): { value: number; limitedBy?: OverProvisionWhy['limitedBy'] } {
  let value = wanted;
  let limitedBy: OverProvisionWhy['limitedBy'];
  if (value > HIGHEST) [value, limitedBy] = [HIGHEST, 'cap'];
  if (Math.abs(value - current) > STEP) [value, limitedBy] = [current + Math.sign(value - current) * STEP, 'damping'];
  const fits = fleetKvTokens > 0 && tokensPerGroup > 0 ? fleetKvTokens / (neededGroups * tokensPerGroup) : Infinity;
  if (value > fits) [value, limitedBy] = [Math.max(1, fits), 'kv'];
  return { value, limitedBy };
}
