/** A fitted parameter, and the published numbers of runs without a policy to which it was fitted. */
export interface FittedParameter {
  parameter: string;
  /** Ids of headlines of baselines; these headlines are no evidence. */
  headlines: readonly string[];
  /** Other published numbers of the same baseline. */
  baseline: string;
}

/** All fitted parameters. All others come from data sheets, configurations or published quantiles, or are assumed. */
export const FITTED: readonly FittedParameter[] = [
  { parameter: '7b-8k stepBaseMs', headlines: ['rollpacker-base-8k'], baseline: '82 s' },
  { parameter: '14b-16k stepBaseMs', headlines: ['rollpacker-base-16k'], baseline: '277 s' },
  { parameter: '32b-32k stepBaseMs', headlines: ['rollpacker-base-32k'], baseline: '673 s' },
  { parameter: 'deepmath quantiles, endlessShare', headlines: [], baseline: 'figure 2a of RollPacker' },
  { parameter: '72b stepBaseMs', headlines: [], baseline: '3,957 s of veRL' },
  { parameter: '72b memoryShare', headlines: ['seer-preemptions'], baseline: '13,686 preemptions' },
  {
    parameter: 'vl-72b sigma, promptShare, endlessShare',
    headlines: ['seer-idle', 'seer-tail-share', 'seer-gap'],
    baseline: 'mean 7,615 tokens',
  },
  { parameter: '235b-moe steps', headlines: [], baseline: '125 to 200 ms a token, 60 ms in small graphs' },
  { parameter: 'moe-32k medianTokens', headlines: ['ascend-base'], baseline: '10,200 s' },
  {
    parameter: 'distill-16k medianTokens',
    headlines: [],
    baseline: 'mean 3.5k to 5.5k under a cap of 8k (DeepScaleR)',
  },
  { parameter: 'medians of april', headlines: [], baseline: 'cap / mean of 2 and 2.5' },
  {
    parameter: 'AGENTIC concurrency, turnsPromptShare',
    headlines: [],
    baseline: 'consistent hash of SkyRL: groups take 1,448 s, and 3,013 s at p90',
  },
  {
    parameter: 'GUI_AGENT contextCapTokens, madeTokens, toolSeconds',
    headlines: [],
    baseline: '6.36 s a generation, 899 s the slowest trajectory',
  },
];
