import type { TailPolicyName } from '@broomwagon/contracts';
import { regenerate, resume } from './batched';
import { drip } from './drip';
import { fixedConcurrency } from './fixed-concurrency';
import type { TailRule } from './tail-rule';
import { wait } from './wait';

export const TAIL_RULES: Readonly<Record<TailPolicyName, TailRule>> = {
  wait,
  regenerate,
  resume,
  drip,
  'fixed-concurrency': fixedConcurrency,
};
