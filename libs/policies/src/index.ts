export * from './admission/adaptive-limit';
export * from './auto';
export * from './discovery/plan-discovery';
export * from './dispatch';
export * from './ledger';
export * from './over-provision/round-time';
export * from './rebalance';
export * from './rounds';
export * from './routing';
export * from './sessions';
export * from './streams';
export {
  areEqual,
  findPolicyFault,
  HISTORY_STEPS,
  hasPins,
  launchedSamples,
  NEVER,
  NO_VERSION_SPAN,
  pinStep,
  roundRules,
  type ControlInput,
  type FixedPolicy,
  type FixedPolicyName,
  type StepRecord,
  type TailControl,
} from './tail';
export { type CollectedSamples, SampleCollector } from './what-if/sample-collector';
export { whatIf, type RecordedSamples, type WhatIfOutcome } from './what-if/what-if';
