import { regenerate, resume } from './batched';
import { drip } from './drip';
import { fixedConcurrency } from './fixed-concurrency';
import type { FixedPolicyName, TailRule } from './tail-rule';
import { wait } from './wait';

export const TAIL_RULES: Readonly<Record<FixedPolicyName, TailRule>> = {
  wait,
  regenerate,
  resume,
  drip,
  'fixed-concurrency': fixedConcurrency,
};
