import type { PoolName } from '@broomwagon/contracts';
import { connectRedis, CredentialStore } from '@broomwagon/state';

/** Time after which the key of a killed run expires, milliseconds. */
const EXPIRES_MS = 604_800_000;

/** Settings of Redis, as returned by `ConnectionsConfig.redisConfig`. */
export type RedisConfig = Parameters<typeof connectRedis>[0] & { keyPrefix: string };

/** Creates a key for the gateway of a run. @throws BroomwagonError UNAVAILABLE */
export function createGatewayKey(redis: RedisConfig, pool: PoolName) {
  return withStore(redis, (store) =>
    store.create({ name: 'npm start', role: 'trainer', pools: [pool], expiresInMs: EXPIRES_MS }),
  );
}

/** @throws BroomwagonError UNAVAILABLE */
export function revokeGatewayKey(redis: RedisConfig, tokenId: string): Promise<boolean> {
  return withStore(redis, (store) => store.revoke(tokenId));
}

async function withStore<T>(config: RedisConfig, work: (store: CredentialStore) => Promise<T>): Promise<T> {
  const redis = connectRedis(config);
  try {
    return await work(new CredentialStore(redis, config.keyPrefix));
  } finally {
    redis.disconnect();
  }
}
