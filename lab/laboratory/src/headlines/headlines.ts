import { SETUPS, type SetupName } from '../parameters';
import type { Headline } from './headline';

/** Tolerance of a run without a policy. */
const BASE_TOLERANCE = 0.1;
const TOLERANCE = 0.15;

function setting(name: SetupName, capTokens: number = SETUPS[name].capTokens): string {
  const { model, hardware } = SETUPS[name];
  return `${model}, ${hardware}, cap ${Math.round(capTokens / 1_024)}k`;
}

const CAPS = ['8k', '16k', '32k'] as const;
/** Seconds of a rollout at 8k, 16k and 32k in figure 11 of RollPacker, as computed by `figureSeconds`. */
const ROLLPACKER_SECONDS: Record<string, readonly [number, number, number]> = {
  base: [82, 277, 673],
  'p-1.125': [77, 244, 636],
  'p-1.25': [72, 169, 259],
  'p-1.5': [60, 143, 279],
  'r-1.125': [77, 260, 658],
  'r-1.25': [71, 232, 655],
  'r-1.5': [54, 115, 265],
};
const ROLLPACKER_BOTH = [1.74, 3.15, 3.96] as const;
const ROLLPACKER_WORDS: Record<string, string> = {
  base: 'synchronous rollout',
  p: 'prompts over-provisioned',
  r: 'samples over-provisioned',
};
const SIBLINGS =
  'This row depends on how similar the lengths of siblings are, which is not published for these data. The laboratory uses what TailSieve measured on another model: 64.8 % of the variance is between prompts. In figure 4a the median of a long round (code) is 1.18 times that of all rounds; siblings with a share of 5 to 10 % would give that, but the rounds without the policy do not confirm it (docs/laboratory.md). `lab sensitivity` prints the row over this range.';
const SHORT_ROUNDS =
  'In which short rounds a response that never ends must be awaited depends on the share of such responses and on how similar the lengths of siblings are: `lab sensitivity` prints the row over both. 1 % is read from figure 2a, of another model at 16k.';

/** Reasons why rows of the table do not hold, by axis and value. */
const WHY: Record<string, string> = {
  'r-1.25': SIBLINGS,
  'r-1.5': SIBLINGS,
  'p-1.125': SHORT_ROUNDS,
  'p-1.25': SIBLINGS,
  'p-1.5': SIBLINGS,
};

const rollpacker: Headline[] = CAPS.flatMap((cap, column) => {
  const common = { source: 'RollPacker', setting: setting(`rollpacker${cap}`) };
  const rows = Object.entries(ROLLPACKER_SECONDS).map(([row, seconds]): Headline => {
    const [axis, value] = row.split('-') as [string, string?];
    return {
      ...common,
      id: `rollpacker-${row}-${cap}`,
      what: `${ROLLPACKER_WORDS[axis]}${value === undefined ? '' : ` ${value}`}`,
      unit: 's',
      published: seconds[column]!,
      tolerance: row === 'base' ? BASE_TOLERANCE : TOLERANCE,
      measure: `${cap}.${row}.seconds`,
      isBaseline: row === 'base',
      why: WHY[row],
    };
  });
  const both: Headline = {
    ...common,
    id: `rollpacker-both-1.25-${cap}`,
    what: 'both over-provisioned 1.25, against synchronous',
    unit: 'x',
    published: ROLLPACKER_BOTH[column]!,
    tolerance: TOLERANCE,
    measure: `${cap}.both-1.25.speedup`,
    why: SIBLINGS,
  };
  return [...rows, both];
});

const LONGEST_FEW =
  'One step of 9,600 requests: its longest few decide, so the seeds differ more than the systems do; see the range.';

function seer(id: string, what: string, published: number, measure: string, more: Partial<Headline> = {}): Headline {
  return {
    id: `seer-${id}`,
    source: 'Seer',
    setting: setting('seer'),
    what,
    unit: 'x',
    published,
    tolerance: more.isBaseline ? BASE_TOLERANCE : TOLERANCE,
    measure: `seer.fitted.${measure}`,
    ...more,
  };
}

/** Rows of verl #5399. Seconds before / after: 6.3596 / 4.5312 (-28.75 %), 899.3761 / 724.6898 (-19.42 %). */
const GUI_ROWS = [
  ['generation', 'seconds of a generation, static hash / global balancer', 6.3596 / 4.5312, 'gui.turn.speedup'],
  ['slowest', 'slowest trajectory, static hash / global balancer', 899.3761 / 724.6898, 'gui.max.speedup'],
] as const;

const others: Headline[] = [
  seer('divided', 'divided rollout, against veRL', 1.42, 'none.speedup'),
  seer('context', 'with context from siblings', 1.56, 'context.speedup'),
  seer('oracle', 'with the true lengths', 1.63, 'oracle.speedup'),
  seer('tail-divided', 'tail of the divided rollout / tail of veRL', 0.79, 'none.tail', {
    unit: 'share',
    why: 'The speed of the divided rollout agrees, its tail does not. The source does not say in which order requests continue without context; first come, first served, and at the end of the queue, give the same tail here.',
  }),
  seer('tail-context', 'tail with context / tail of veRL', 0.11, 'context.tail', { unit: 'share', why: LONGEST_FEW }),
  seer('idle', 'idle share of veRL', 0.37, 'base.idle', { unit: 'share', isBaseline: true, why: LONGEST_FEW }),
  seer('tail-share', 'share of the last tenth of requests in the time of veRL', 0.58, 'base.tail', {
    unit: 'share',
    isBaseline: true,
  }),
  seer('gap', 'first to last server, share of the time of veRL', 0.7, 'base.gap', {
    unit: 'share',
    isBaseline: true,
    why: LONGEST_FEW,
  }),
  seer('preemptions', 'preemptions of veRL', 13_686, 'base.preemptions', { unit: 'count', isBaseline: true }),
  {
    id: 'ascend-base',
    source: 'Ascend rebalance',
    setting: setting('ascend'),
    what: 'no rebalance, graphs of one size',
    unit: 's',
    published: 10_200,
    tolerance: BASE_TOLERANCE,
    measure: 'ascend.base.seconds',
    isBaseline: true,
  },
  {
    id: 'ascend-rebalance',
    source: 'Ascend rebalance',
    setting: setting('ascend'),
    what: 'published rule and graphs of several sizes',
    unit: 'x',
    published: 1.67,
    tolerance: TOLERANCE,
    measure: 'ascend.both.speedup',
    why: 'Most of the step is bound by throughput here, then by its longest responses; moves shorten neither. With lengths that give the seconds of the baseline exactly it is 1.40x. One step: a few ranks with many long groups decide, see the range.',
  },
  {
    id: 'april-mean',
    source: 'APRIL',
    setting: setting('april'),
    what: 'over-provision 2, cap / mean 2 (published: mean over models 1.17 to 1.35)',
    unit: 'x',
    published: [1.17, 1.35],
    tolerance: TOLERANCE,
    measure: 'april.tight.2.speedup',
  },
  {
    id: 'april-most',
    source: 'APRIL',
    setting: setting('april'),
    what: 'over-provision 2, cap / mean 2.5 (published: the most, by version)',
    unit: 'x',
    published: [1.44, 1.495],
    tolerance: TOLERANCE,
    measure: 'april.wide.2.speedup',
  },
  {
    id: 'april-off-policy',
    source: 'APRIL',
    setting: setting('april'),
    what: 'off-policy share of the tokens, over-provision 1.5',
    unit: 'share',
    published: 0.4,
    tolerance: TOLERANCE,
    measure: 'april.wide.1.5.offPolicy',
    why: 'The laboratory counts all tokens of a group that was cut as off-policy, also those of its finished siblings. The source does not say which tokens it counts, and its value is an average over other models and over-provisions.',
  },
  ...Object.entries({ '8k': 1.27, '15k': 54.05 / 34.2, '40k': 2.26 }).map(([cap, published]): Headline => ({
    id: `copris-${cap}`,
    source: 'CoPRIS',
    setting: setting('copris', Number.parseInt(cap, 10) * 1_024),
    what: '1,024 in flight, end to end; ours with a rollout share of 70 % at 15k',
    unit: 'x',
    published,
    tolerance: TOLERANCE,
    measure: `copris.${cap}.endToEnd`,
    why: 'A sequence costs 0.16 ms of each step here, as measured by TailSieve; twice the batch takes back a part of the gain.',
  })),
  ...Object.entries({ 64: 1.35, 256: 1.12 }).map(([groups, published]): Headline => ({
    id: `tailsieve-${groups}`,
    source: 'TailSieve',
    setting: `${setting('tailsieve')}, ${groups} groups a step`,
    what: 'tail groups on a server of their own, 25 % excess, no speculation',
    unit: 'x',
    published,
    tolerance: TOLERANCE,
    measure: `tailsieve.${groups}.1.25.speedup`,
  })),
  {
    id: 'unirl-spread',
    source: 'UniRL',
    setting: setting('rollpacker16k'),
    what: 'siblings spread by least in-flight, against grouped ("real but single-digit" per cent)',
    unit: 'x',
    published: [1, 1.1],
    tolerance: 0.02,
    measure: 'siblings.rollpacker16k.speedup',
  },
  {
    id: 'skyrl-sticky',
    source: 'SkyRL',
    setting: 'agentic overlay: 416 trajectories at once on 16 engines of 14B',
    what: 'p90 of groups, consistent hash / sticky least sessions (3,013 / 1,636 s)',
    unit: 'x',
    published: 3_013 / 1_636,
    tolerance: TOLERANCE,
    measure: 'agentic.hash.slowdown',
    why: 'The order holds. How much depends on engines and KV pressure, which the source calls moderate and does not give.',
  },
  ...GUI_ROWS.map(([id, what, published, measure]): Headline => ({
    id: `verl-${id}`,
    source: 'verl #5399',
    setting: 'Qwen2.5-VL-32B, 24 H100, OSWorld, 384 trajectories of at most 50 turns',
    what,
    unit: 'x',
    published,
    tolerance: TOLERANCE,
    measure,
    why: 'The source shows the load of each server only in a picture that is no longer there. A hash of 384 sessions is uneven by an eighth, and a server with more of them slows its own; that alone does not give the published mean.',
  })),
];

/** All published results that the laboratory repeats. */
export const HEADLINES: readonly Headline[] = [...rollpacker, ...others];
