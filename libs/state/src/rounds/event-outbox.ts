import type { PoolName } from '@broomwagon/contracts';
import { awaitAnswer } from '../redis';
import type { RedisClient } from '../redis-cluster';

/** An event as a transition wrote it. */
export interface RolloutEvent {
  /** Id in the stream, which is the message id of the published event. */
  id: string;
  /** e.g. `round.completed`. */
  type: string;
  body: Record<string, unknown>;
}

const PAGE = 256;
/** Time without a call after which a relay counts as stopped, milliseconds. */
const RELAY_TTL_MS = 10_000;

/**
 * Reads the outbox of events. One replica relays a pool, so that events are published in their order. Published events
 * leave the outbox, so its first entry is the next one to publish.
 */
export class EventOutbox {
  constructor(
    private readonly redis: RedisClient,
    private readonly keyPrefix: string,
    private readonly replica = `relay-${process.pid}-${Date.now()}`,
  ) {}

  /**
   * The first events of a pool, at most 256, to publish and then remove with {@link done}. None while another replica
   * relays them. @throws UNAVAILABLE
   */
  async take(pool: PoolName): Promise<RolloutEvent[]> {
    const entries = await awaitAnswer(this.redis.xrange(this.buildKey(pool), '-', '+', 'COUNT', PAGE));
    return entries.length > 0 && (await awaitAnswer(this.isRelay(`${this.buildKey(pool)}Relay`)))
      ? parseEvents(entries)
      : [];
  }

  /** Removes published events from the outbox. @throws UNAVAILABLE */
  async done(pool: PoolName, events: readonly RolloutEvent[]): Promise<void> {
    await awaitAnswer(this.redis.xdel(this.buildKey(pool), ...events.map(({ id }) => id)));
  }

  /**
   * Makes this replica the relay if there is none. For a moment two replicas may be relays and publish events twice.
   */
  private async isRelay(key: string): Promise<boolean> {
    if ((await this.redis.set(key, this.replica, 'PX', RELAY_TTL_MS, 'NX')) !== null) return true;
    if ((await this.redis.get(key)) !== this.replica) return false;
    await this.redis.pexpire(key, RELAY_TTL_MS);
    return true;
  }

  private buildKey(pool: PoolName): string {
    return `${this.keyPrefix}:{${pool}}:events`;
  }
}

function parseEvents(entries: [id: string, fields: string[]][]): RolloutEvent[] {
  return entries.map(([id, fields]) => {
    const value = (name: string): string => fields[fields.indexOf(name) + 1]!;
    return { id, type: value('type'), body: JSON.parse(value('json')) as Record<string, unknown> };
  });
}
