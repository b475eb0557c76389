export { buildOutlook, MIN_CONTEXT_BIN, type SessionCounts } from './session-outlook';
