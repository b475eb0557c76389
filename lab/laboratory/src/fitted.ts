/** A number that was fitted, and what it was fitted to: facts published of runs without a policy. */
export interface FittedParameter {
  parameter: string;
  /** Headlines of baselines; they are no evidence. */
  headlines: readonly string[];
  /** Other published numbers of the same baseline. */
  facts: string;
}

/** Everything that was fitted. What is not here comes from a data sheet, a configuration, published quantiles, or is assumed. */
export const FITTED: readonly FittedParameter[] = [
  { parameter: '7b-8k stepBaseMs', headlines: ['rollpacker-base-8k'], facts: '82 s' },
  { parameter: '14b-16k stepBaseMs', headlines: ['rollpacker-base-16k'], facts: '277 s' },
  { parameter: '32b-32k stepBaseMs', headlines: ['rollpacker-base-32k'], facts: '673 s' },
  { parameter: '72b stepBaseMs', headlines: [], facts: '3,957 s of veRL' },
  { parameter: '72b memoryShare', headlines: ['seer-preemptions'], facts: '13,686 preemptions' },
  {
    parameter: 'vl-72b sigma, promptShare, endlessShare',
    headlines: ['seer-idle', 'seer-tail-share', 'seer-gap'],
    facts: 'mean 7,615 tokens',
  },
  { parameter: '235b-moe steps', headlines: [], facts: '125 to 200 ms a token, 60 ms in small graphs' },
  { parameter: 'moe-32k medianTokens', headlines: ['ascend-base'], facts: '10,200 s' },
  { parameter: 'medians of april', headlines: [], facts: 'cap / mean of 2 and 2.5' },
  { parameter: 'AGENTIC concurrency', headlines: [], facts: 'p90 / mean of consistent hash, 2.1' },
  {
    parameter: 'GUI_AGENT contextCapTokens, madeTokens, toolSeconds',
    headlines: [],
    facts: '6.36 s a generation, 899 s the slowest trajectory',
  },
];
