import { Redis } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import { type RedisHistory, SET_BACK_KINDS, startSetBackRedis } from '.';
import { nowMs } from './redis-history';

/** Snapshots are taken so often. */
const MAX_TOO_MUCH_MS = 1_500;

describe('a Redis that can be set back', () => {
  let history: RedisHistory | undefined;
  let client: Redis | undefined;
  afterEach(async () => {
    client?.disconnect();
    await history?.stop();
  });

  /** `run_id` and `master_replid`, the identity of the data. */
  async function identity(): Promise<string[]> {
    const text = await client!.info();
    return ['run_id', 'master_replid'].map((name) => new RegExp(`^${name}:(\\w+)`, 'm').exec(text)![1]!);
  }

  it.each(SET_BACK_KINDS)('answers under its address as another server, with its data of then: %s', async (kind) => {
    history = await startSetBackRedis(kind);
    client = new Redis(history.url);
    client.on('error', () => undefined);
    for (const round of ['first', 'second']) {
      const before = await identity();
      const writtenAtMs = [nowMs()];
      /** Writes the numbers that follow until `pastMs` after the first of them. */
      const writeFor = async (durationMs: number) => {
        for (const endsMs = nowMs() + durationMs; nowMs() < endsMs;) {
          await client!.set(round, writtenAtMs.length);
          writtenAtMs.push(nowMs());
        }
      };
      await writeFor(1_200);
      const endMs = nowMs();
      const lostMs = await history.setBack(500);
      const value = Number(await client.get(round));
      const heldMs = writtenAtMs[value]!;
      expect(endMs - heldMs).toBeGreaterThan(400);
      expect(endMs - heldMs).toBeLessThan(500 + MAX_TOO_MUCH_MS);
      expect(lostMs).toBeGreaterThanOrEqual(500);
      const after = await identity();
      expect(after[0]).not.toBe(before[0]);
      expect(after[1]).not.toBe(before[1]);
      // The server takes writes.
      await client.set('written', round);
    }
  });
});
