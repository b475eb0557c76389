/** Returns the mean of a measure over the seeds, by its name. */
export type MeanOf = (measure: string) => number;

/** A relation between results that must hold, whatever the exact numbers are. */
export interface Band {
  id: string;
  what: string;
  check(mean: MeanOf): { holds: boolean; value: string };
  /** Reason why the band does not hold, as far as it is known. */
  why?: string;
}

const CAPS = ['8k', '16k', '32k'] as const;
const two = (value: number): string => value.toFixed(2);
const list = (values: readonly number[]): string => values.map(two).join(' ');
const within = (value: number, low: number, high: number): boolean => value >= low && value <= high;

export const BANDS: readonly Band[] = [
  {
    id: 'A1',
    what: 'makespan of a static batch = sum L_j (tau(j) - tau(j - 1)), within 1 %',
    check: (mean) => ({
      holds: mean('oracle.error') <= 0.01,
      value: `${(100 * mean('oracle.error')).toFixed(4)} % off`,
    }),
  },
  {
    id: 'A2',
    what: 'seconds of the synchronous rollout of RollPacker, three caps, within 10 %',
    check: (mean) => {
      const ratios = [82, 277, 673].map((published, index) => mean(`${CAPS[index]}.base.seconds`) / published);
      return { holds: ratios.every((ratio) => within(ratio, 0.9, 1.1)), value: list(ratios) };
    },
  },
  {
    id: 'A3',
    what: 'prompts over-provisioned at 32k: t(1.125) > t(1.25) < t(1.5)',
    check: (mean) => {
      const [low, middle, high] = ['1.125', '1.25', '1.5'].map((eta) => mean(`32k.p-${eta}.seconds`)) as [
        number,
        number,
        number,
      ];
      return { holds: high > middle && middle < low, value: [low, middle, high].map(Math.round).join(' ') };
    },
  },
  {
    id: 'A4',
    what: 'both 1.25: the speedup rises with the cap, and is 3.2 to 4.6 at 32k',
    check: (mean) => {
      const speedups = CAPS.map((cap) => mean(`${cap}.both-1.25.speedup`)) as [number, number, number];
      const rises = speedups[0] < speedups[1] && speedups[1] < speedups[2];
      return { holds: rises && within(speedups[2], 3.2, 4.6), value: list(speedups) };
    },
  },
  {
    id: 'A5',
    what: 'Seer: request level < context <= oracle, context within 10 % of it; nothing gained where prompts explain 41 %',
    check: (mean) => {
      const [none, context, oracle] = ['none', 'context', 'oracle'].map((one) =>
        mean(`seer.fitted.${one}.speedup`),
      ) as [number, number, number];
      const gainAtLow = mean('seer.low.context.speedup') / mean('seer.low.none.speedup');
      const holds = 1 < context && none < context && context <= oracle && context >= 0.9 * oracle && gainAtLow <= 1.02;
      return { holds, value: `${list([none, context, oracle])}; at 41 % context / none ${two(gainAtLow)}` };
    },
  },
  {
    id: 'A6',
    what: 'veRL: idle 30 to 45 %, last tenth 45 to 65 % of the time',
    check: (mean) => {
      const [idle, tail] = [mean('seer.fitted.base.idle'), mean('seer.fitted.base.tail')];
      return { holds: within(idle, 0.3, 0.45) && within(tail, 0.45, 0.65), value: list([idle, tail]) };
    },
  },
  {
    id: 'A7',
    what: 'Ascend: moves and graphs together more than their product, 1.35 to 1.7',
    check: (mean) => {
      const [graphs, moves, both] = ['graphs', 'moves', 'both'].map((one) => mean(`ascend.${one}.speedup`)) as [
        number,
        number,
        number,
      ];
      return {
        holds: both > graphs * moves && within(both, 1.35, 1.7),
        value: `${list([graphs, moves])} -> ${two(both)}`,
      };
    },
  },
  {
    id: 'A8',
    what: 'siblings spread against grouped: 1.0 to 1.12; above 1.25 where KV is short (long thinking on 32B, Seer)',
    check: (mean) => {
      const speedups = (names: string[]): number[] => names.map((name) => mean(`siblings.${name}.speedup`));
      const roomy = speedups(['rollpacker8k', 'rollpacker16k', 'rollpacker32k']);
      const short = speedups(['thinking32k', 'seer']);
      const holds = roomy.every((value) => within(value, 0.99, 1.12)) && short.every((value) => value > 1.25);
      return { holds, value: `${list(roomy)}; ${list(short)}` };
    },
  },
  {
    id: 'A9',
    what: 'APRIL: gain rises with over-provision and with cap / mean; off-policy 40 to 80 %',
    check: (mean) => {
      const gain = (trace: string, over: number): number => mean(`april.${trace}.${over}.speedup`);
      const rises =
        gain('tight', 1.5) < gain('tight', 2) &&
        gain('wide', 1.5) < gain('wide', 2) &&
        gain('tight', 1.5) < gain('wide', 1.5) &&
        gain('tight', 2) < gain('wide', 2);
      const shares = ['tight', 'wide'].flatMap((trace) =>
        [1.5, 2].map((over) => mean(`april.${trace}.${over}.offPolicy`)),
      );
      return {
        holds: rises && shares.every((share) => within(share, 0.4, 0.8)),
        value: `gain ${list([gain('tight', 1.5), gain('tight', 2), gain('wide', 1.5), gain('wide', 2)])}; off-policy ${list(shares)}`,
      };
    },
  },
  {
    id: 'A10',
    what: 'preemptions: more than 5,000 a short round of Qwen3-8B at 32k with over-provision, fewer at a fixed concurrency',
    check: (mean) => {
      const [base, both, fixed] = ['base', 'both-1.25', 'concurrency'].map((one) => mean(`preemptions.${one}`)) as [
        number,
        number,
        number,
      ];
      const value = [base, both, fixed].map(Math.round).join(' -> ');
      return { holds: both > 5_000 && base < both && fixed < both, value: `${value} a round` };
    },
    why: 'The lengths of Qwen3-8B and the KV cache that RollPacker leaves to it beside the trainer are not published.',
  },
  {
    id: 'A11',
    what: 'bias: regenerate below 1, resume 0.99 to 1.01',
    check: (mean) => {
      const regenerated = CAPS.map((cap) => mean(`${cap}.p-1.25.bias`));
      const resumed = CAPS.map((cap) => mean(`${cap}.resume-1.25.bias`));
      const holds = regenerated.every((bias) => bias < 0.99) && resumed.every((bias) => within(bias, 0.99, 1.01));
      return { holds, value: `regenerate ${list(regenerated)}; resume ${list(resumed)}` };
    },
  },
  {
    id: 'A12',
    what: 'agentic p90: sticky least loaded < consistent hash < no stickiness',
    check: (mean) => {
      const names = ['sticky-least-inflight', 'consistent-hash', 'least-inflight'];
      const [sticky, hash, loose] = names.map((name) => mean(`agentic.${name}.p90`)) as [number, number, number];
      return { holds: sticky < hash && hash < loose, value: [sticky, hash, loose].map(Math.round).join(' < ') };
    },
  },
];
