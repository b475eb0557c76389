export * from './file-payload-store';
export * from './open-payload-store';
export * from './payload-ref';
export * from './payload.module';
export * from './payload-store';
export * from './redis-payload-store';
