export * from './admission/adaptive-limit';
export * from './ledger';
export * from './over-provision/round-time';
export * from './rebalance';
export * from './rounds';
export * from './routing';
export {
  areEqual,
  findPolicyFault,
  HISTORY_STEPS,
  hasPins,
  NO_VERSION_SPAN,
  roundRules,
  type StepRecord,
  type TailControl,
} from './tail';
export * from './what-if/what-if';
