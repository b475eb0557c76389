export { boundsOfReplay } from './predict-rows';
export { isRecorded, recordGroup } from './recorded-groups';
export { type ResolvedPolicy, resolvePolicy, resolveSteps } from './resolve-policy';
