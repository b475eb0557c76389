export { openPayloadStore } from './open-payload-store';
export type { PayloadName } from './payload-ref';
export * from './payload.module';
export { PayloadStore, type PayloadChunk, type PayloadUsage } from './payload-store';
