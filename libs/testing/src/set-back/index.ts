import { LaggingReplica } from './lagging-replica';
import type { RedisHistory } from './redis-history';
import { RestoredSnapshot } from './restored-snapshot';
import { TruncatedFile } from './truncated-file';

export type { RedisHistory } from './redis-history';

/** How Redis may come to have an earlier state; `torn` cuts the append-only file at any byte. */
export const SET_BACK_KINDS = ['snapshot', 'truncated', 'torn', 'failover'] as const;
export type SetBackKind = (typeof SET_BACK_KINDS)[number];

/** Most bytes that a `torn` set-back cuts beyond the bytes that were written since. */
const MAX_TORN_BYTES = 20_000;

/**
 * Starts a Redis of our own that can be set back to its data of some time ago.
 * @param random from 0 to 1; decides at which byte the file of `torn` ends
 */
export function startSetBackRedis(kind: SetBackKind, random: () => number = Math.random): Promise<RedisHistory> {
  switch (kind) {
    case 'snapshot':
      return RestoredSnapshot.start();
    case 'truncated':
      return TruncatedFile.start();
    case 'torn':
      return TruncatedFile.start(() => 1 + Math.floor(random() * MAX_TORN_BYTES));
    case 'failover':
      return LaggingReplica.start();
  }
}
