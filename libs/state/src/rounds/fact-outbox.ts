import { BroomwagonError, type PoolName } from '@broomwagon/contracts';
import type { Redis } from 'ioredis';

/** A fact as a script wrote it. */
export interface Fact {
  /** Id in the stream: the message id of what is published. */
  id: string;
  /** e.g. `round.completed`. */
  type: string;
  body: Record<string, unknown>;
}

const GROUP = 'relay';
/** A relay that took facts and did not tell within this time is taken for dead, milliseconds. */
const TAKEN_OVER_AFTER_MS = 30_000;

/** Reads the outbox of facts; replicas share it, and what one has taken and not finished another takes over. */
export class FactOutbox {
  private readonly ready = new Set<PoolName>();
  private readonly reviewedAtMs = new Map<PoolName, number>();

  constructor(
    private readonly redis: Redis,
    private readonly keyPrefix: string,
    /** Name of this replica. */
    private readonly consumer: string,
  ) {}

  /** The next facts of a pool, at most 256; each must be finished with {@link done}. @throws UNAVAILABLE */
  async take(pool: PoolName): Promise<Fact[]> {
    return this.asked(pool, async (key) => {
      if (!this.ready.has(pool)) {
        await this.redis.xgroup('CREATE', key, GROUP, '0', 'MKSTREAM').catch(ignoreExisting);
        this.ready.add(pool);
      }
      const left = await this.takeOver(pool, key);
      if (left.length > 0) return left;
      const answer = (await this.redis.xreadgroup('GROUP', GROUP, this.consumer, 'COUNT', 256, 'STREAMS', key, '>')) as
        [string, StreamEntry[]][] | null;
      return answer === null ? [] : factsOf(answer[0]![1]);
    });
  }

  /** Facts that were published: they are taken off the outbox. @throws UNAVAILABLE */
  async done(pool: PoolName, facts: readonly Fact[]): Promise<void> {
    if (facts.length === 0) return;
    const ids = facts.map(({ id }) => id);
    await this.asked(pool, async (key) => {
      await this.redis.xack(key, GROUP, ...ids);
      await this.redis.xdel(key, ...ids);
    });
  }

  private async takeOver(pool: PoolName, key: string): Promise<Fact[]> {
    const now = Date.now();
    if (now - (this.reviewedAtMs.get(pool) ?? 0) < TAKEN_OVER_AFTER_MS) return [];
    this.reviewedAtMs.set(pool, now);
    const answer = await this.redis.xautoclaim(key, GROUP, this.consumer, TAKEN_OVER_AFTER_MS, '0', 'COUNT', 256);
    return factsOf((answer as [string, StreamEntry[]])[1]);
  }

  private async asked<T>(pool: PoolName, ask: (key: string) => Promise<T>): Promise<T> {
    try {
      return await ask(`${this.keyPrefix}:{${pool}}:facts`);
    } catch (cause) {
      // The stream may have gone with a Redis that lost its data.
      this.ready.delete(pool);
      throw new BroomwagonError('UNAVAILABLE', `The outbox of facts: ${(cause as Error).message}`, { cause });
    }
  }
}

type StreamEntry = [id: string, fields: string[] | null];

function factsOf(entries: StreamEntry[]): Fact[] {
  const facts: Fact[] = [];
  for (const [id, fields] of entries) {
    // A fact that the cap has cut off while it was pending has no fields.
    if (fields === null) continue;
    const value = (name: string): string => fields[fields.indexOf(name) + 1]!;
    facts.push({ id, type: value('type'), body: JSON.parse(value('json')) as Record<string, unknown> });
  }
  return facts;
}

function ignoreExisting(error: unknown): void {
  if (!(error instanceof Error) || !error.message.startsWith('BUSYGROUP')) throw error;
}
