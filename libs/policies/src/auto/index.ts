export { boundsOfReplay, brokenBounds, DEFAULT_VERSION_SPAN } from './predict-rows';
export { isRecorded, recordGroup } from './recorded-groups';
export { type ResolvedPolicy, resolvePolicy, resolveSteps } from './resolve-policy';
