export { FilePayloadStore } from './file-payload-store';
export { DEFAULT_PAYLOAD_QUOTA_BYTES, openPayloadStore, type PayloadStoreOptions } from './open-payload-store';
export {
  formatPayloadRef,
  parsePayloadRef,
  PAYLOAD_DRIVERS,
  type PayloadDriver,
  type PayloadName,
} from './payload-ref';
export { PayloadModule } from './payload.module';
export * from './payload-store';
export { RedisPayloadStore } from './redis-payload-store';
