export { EngineAccess } from './access/engine-access';
export { createEngineAdapter, detectEngine, type DetectedEngine } from './detect-engine';
export { NO_VERSION } from './dialects/http-adapter';
export * from './engine-adapter';
export { engineRequestId } from './engine-request-id';
export { withoutQuote } from './http/engine-http';
export { callSignal, type CallSignal } from './http/deadline';
export { planAttempt, type AttemptPlan } from './resume';
export { sampleSeed, type SeededSample } from './sample-seed';
