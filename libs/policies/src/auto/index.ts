export { chooseAuto, type ChosenAuto } from './choose-auto';
export { AUTO_FIELDS, boundsOfReplay, brokenBounds, DEFAULT_VERSION_SPAN } from './predict-rows';
export { measuredCosts } from './measured-costs';
export { isRecorded, recordGroup } from './recorded-groups';
export { type ResolvedPolicy, resolvePolicy, withChoice } from './resolve-policy';
