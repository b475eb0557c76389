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

const PAGE = 256;
/** A relay that was not heard of for this long is taken for dead, milliseconds. */
const RELAY_TTL_MS = 10_000;

/**
 * Reads the outbox of facts. One replica relays a pool, so that facts are published in their order; they leave the outbox
 * when they are, so its first entry is where the relay stands.
 */
export class FactOutbox {
  constructor(
    private readonly redis: Redis,
    private readonly keyPrefix: string,
    /** Name of this replica. */
    private readonly replica: string,
  ) {}

  /**
   * The first facts of a pool, at most 256, to be published and then finished with {@link done}; none while another
   * replica relays them. @throws UNAVAILABLE
   */
  take(pool: PoolName): Promise<Fact[]> {
    return this.asked(pool, async (root) => {
      const entries = await this.redis.xrange(`${root}:facts`, '-', '+', 'COUNT', PAGE);
      return entries.length > 0 && (await this.isRelay(`${root}:factsRelay`)) ? factsOf(entries) : [];
    });
  }

  /** Facts that were published: they are taken off the outbox. @throws UNAVAILABLE */
  async done(pool: PoolName, facts: readonly Fact[]): Promise<void> {
    await this.asked(pool, (root) => this.redis.xdel(`${root}:facts`, ...facts.map(({ id }) => id)));
  }

  /** Two may believe so for a moment: facts are then published twice, and the outbox loses none. */
  private async isRelay(key: string): Promise<boolean> {
    if ((await this.redis.set(key, this.replica, 'PX', RELAY_TTL_MS, 'NX')) !== null) return true;
    if ((await this.redis.get(key)) !== this.replica) return false;
    await this.redis.pexpire(key, RELAY_TTL_MS);
    return true;
  }

  private async asked<T>(pool: PoolName, ask: (root: string) => Promise<T>): Promise<T> {
    try {
      return await ask(`${this.keyPrefix}:{${pool}}`);
    } catch (cause) {
      throw new BroomwagonError('UNAVAILABLE', `The outbox of facts: ${(cause as Error).message}`, { cause });
    }
  }
}

function factsOf(entries: [id: string, fields: string[]][]): Fact[] {
  return entries.map(([id, fields]) => {
    const value = (name: string): string => fields[fields.indexOf(name) + 1]!;
    return { id, type: value('type'), body: JSON.parse(value('json')) as Record<string, unknown> };
  });
}
