export { isRecorded, recordGroup } from './recorded-groups';
export { resolvePolicy } from './resolve-policy';
