export {
  buildOutlook,
  chanceOfReturn,
  expectGrowth,
  MIN_CONTEXT_BIN,
  toContextBin,
  type SessionCounts,
  type SessionOutlook,
} from './session-outlook';
