import type { RedisClient } from '../redis-cluster';
import { transition, type FunctionRunner } from '../library/function-runner';
import type { Finding } from './findings';
import { keysBelow } from './key-scan';

/** Name of a key in library/keys.lua; for a kind of keys, a list of the name and the ids of one key. */
export type Key = string | readonly [name: string, ...parts: string[]];
/** A command of Redis and its key, or a view of audit/views.lua, with arguments. */
export type Read = readonly [what: string, ...args: unknown[]];
/** A step of a repair, see audit/mend.lua. */
export type Step = readonly [what: string, ...args: unknown[]];

/** A fault in the values that were read, and the steps that repair it, if there are any. */
export interface Discrepancy {
  check: string;
  where: string;
  detail?: string;
  steps?: Step[];
}

interface Checked {
  /** Reads of the item with their answers. */
  seen: [read: Read, answer: unknown][];
  found: Discrepancy[];
}

const readItems = transition<{ items: Read[][] }, { answers: unknown[][] }>('audit/read');
const mendItems = transition<{ items: { seen: Checked['seen']; steps: Step[] }[] }, { mended: boolean[] }>(
  'audit/mend',
);

/** Commands that find and remove one entry of an index, by the command that reads the index in pages. */
const INDEXES = { HSCAN: ['HEXISTS', 'HDEL'], SSCAN: ['SISMEMBER', 'SREM'], ZSCAN: ['ZSCORE', 'ZREM'] } as const;

/** The time of an audit is over. */
export class AuditDeadline extends Error {}

/** Maximum items of one call. When the items need many reads, the call answers only the first items. */
const ITEMS_PER_CALL = 128;
/** Maximum reads of an item. An item that has changed since its last read is read again. */
const MAX_TRIES = 4;

/** One pass of an audit over a pool: reads it in pages, compares, and repairs faults if requested. */
export class PoolLook {
  readonly findings: Finding[] = [];
  /** Servers, workers and jobs that changed all the time, so that their sums are unknown. */
  readonly unproven: string[] = [];

  constructor(
    private readonly redis: RedisClient,
    private readonly runner: FunctionRunner,
    private readonly pool: string,
    /** Repairs indexes and counts that can be derived from leases and requests. */
    readonly repair: boolean,
    /** Time of `performance.now()` after which nothing more is read. */
    private readonly deadlineMs = Infinity,
  ) {}

  /** @throws AuditDeadline */
  checkDeadline(): void {
    if (performance.now() >= this.deadlineMs) throw new AuditDeadline('The audit takes too long');
  }

  /** Answer of one command or view. */
  async read<Answer>(...read: Read): Promise<Answer> {
    return (await this.readAll([[read]]))[0]![0] as Answer;
  }

  /** Pages of the names in a hash, set or sorted set; each name once. */
  async *names(key: Key, scan: keyof typeof INDEXES): AsyncGenerator<string[]> {
    const seen = new Set<string>();
    for (let cursor = '0', first = true; first || cursor !== '0'; first = false) {
      const page = await this.read<[string, unknown]>(scan, key, cursor, 'COUNT', ITEMS_PER_CALL);
      const entries = toList<string>(page[1]);
      const names = scan === 'SSCAN' ? entries : entries.filter((_, position) => position % 2 === 0);
      const fresh = names.filter((name) => !seen.has(name));
      for (const name of fresh) seen.add(name);
      yield fresh;
      [cursor] = page;
    }
  }

  /** All keys that begin with `prefix`, in pages, without the prefix. @param prefix below the root of the pool */
  async *keysBelow(prefix: string): AsyncGenerator<string[]> {
    const whole = `${this.runner.rootKey(this.pool)}:${prefix}`;
    for await (const keys of keysBelow(this.redis, whole)) {
      this.checkDeadline();
      yield keys.map((key) => key.slice(whole.length));
    }
  }

  /** Fields of one hash. */
  fields(key: string, ...fields: string[]): Promise<(string | null)[]> {
    return this.redis.hmget(`${this.runner.rootKey(this.pool)}:${key}`, ...fields);
  }

  /** Fields of all hashes whose names begin with `prefix`. Calls no transition, because the fields may be large. */
  async *hashes(prefix: string, ...fields: string[]): AsyncGenerator<[id: string, values: (string | null)[]]> {
    for await (const ids of this.keysBelow(prefix)) {
      const pipeline = this.redis.pipeline();
      for (const id of ids) pipeline.hmget(`${this.runner.rootKey(this.pool)}:${prefix}${id}`, ...fields);
      for (const [index, [error, values]] of ((await pipeline.exec()) ?? []).entries()) {
        if (error) throw error;
        yield [ids[index]!, values as (string | null)[]];
      }
    }
  }

  /**
   * Reads each item at one moment and checks it. With `repair`, the steps of a faulty item are done if the item is
   * unchanged since it was read. An item that has changed or was mended is checked once more.
   */
  async compare<Item>(
    items: readonly Item[],
    readsOf: (item: Item) => Read[],
    check: (item: Item, answers: unknown[]) => Discrepancy[],
  ): Promise<void> {
    let left = items;
    for (let tries = 1; left.length > 0; tries++) {
      const checked = (await this.readEach(left, readsOf)).map(([item, answers]) => ({
        item,
        seen: readsOf(item).map((read, position) => [read, answers[position]] as [Read, unknown]),
        found: check(item, answers),
      }));
      const off = checked.filter(({ found }) => found.length > 0);
      const mended = await this.mend(off);
      const isLast = tries === MAX_TRIES;
      const changed = off.filter(({ found }, index) => {
        const isMendable = this.repair && found.some(({ steps }) => steps !== undefined);
        if (!isMendable || mended[index] || isLast) this.note(found, mended[index]!);
        return isMendable && !isLast;
      });
      left = changed.map(({ item }) => item);
    }
  }

  /** Checks a view of each item of these pages; an item that is gone is skipped. */
  async checkEach<View>(
    pages: AsyncIterable<string[]>,
    view: string,
    check: (id: string, found: View) => Discrepancy[],
  ): Promise<void> {
    for await (const ids of pages) {
      await this.compare(
        ids,
        (id) => [[view, id]],
        (id, [found]) => (found === false ? [] : check(id, found as View)),
      );
    }
  }

  /**
   * Repeats a check that reads its object with several calls, until the object stays the same during the check.
   * @param what name of the object for `unproven`
   * @param check false when the object has changed
   */
  async whenStill(what: string, check: () => Promise<boolean>): Promise<void> {
    for (let tries = 1; tries <= MAX_TRIES; tries++) if (await check()) return;
    this.unproven.push(what);
  }

  /**
   * Checks the entries of an index.
   * @param isRight checks the answers to `more.reads`
   * @param more.remove steps that replace the removal of the entry from the index; `more.steps` follow
   */
  async checkIndex(
    index: Key,
    scan: keyof typeof INDEXES,
    check: string,
    isRight: (answers: unknown[]) => boolean,
    more: { reads: (id: string) => Read[]; detail?: string; remove?: (id: string) => Step[]; steps?: Step[] },
  ): Promise<void> {
    const [lookUp, remove] = INDEXES[scan];
    for await (const ids of this.names(index, scan)) {
      await this.compare(
        ids,
        (id) => [[lookUp, index, id], ...more.reads(id)],
        (where, [isNamed, ...answers]) => {
          if (isNamed === false || isNamed === 0 || isRight(answers)) return [];
          const removal = more.remove?.(where) ?? [['call', remove, index, where]];
          return [{ check, where, detail: more.detail, steps: [...removal, ...(more.steps ?? [])] }];
        },
      );
    }
  }

  /** Reads each item at one moment. */
  async readEach<Item>(
    items: readonly Item[],
    readsOf: (item: Item) => Read[],
  ): Promise<[item: Item, answers: unknown[]][]> {
    const answers = await this.readAll(items.map(readsOf));
    return items.map((item, index) => [item, answers[index]!]);
  }

  note(found: readonly Discrepancy[], isMended = false): void {
    for (const { check, where, detail = '', steps } of found) {
      this.findings.push({ check, where, detail, repaired: isMended && steps !== undefined });
    }
  }

  private async readAll(items: readonly Read[][]): Promise<unknown[][]> {
    return this.inPages(items, async (page) => (await this.runner.run(readItems, this.pool, { items: page })).answers);
  }

  private async mend(checked: readonly Checked[]): Promise<boolean[]> {
    if (!this.repair) return checked.map(() => false);
    const items = checked.map(({ seen, found }) => ({ seen, steps: found.flatMap(({ steps }) => steps ?? []) }));
    return this.inPages(items, async (page) => (await this.runner.run(mendItems, this.pool, { items: page })).mended);
  }

  /** Sends items in pages. A call may answer only the first items; the others are sent again. */
  private async inPages<Item, Reply>(items: readonly Item[], call: (page: Item[]) => Promise<Reply[]>) {
    const replies: Reply[] = [];
    while (replies.length < items.length) {
      this.checkDeadline();
      replies.push(...(await call(items.slice(replies.length, replies.length + ITEMS_PER_CALL))));
    }
    return replies;
  }
}

/** Items of an answer. An empty list arrives as an object, because Lua has one type for both. */
export function toList<Item>(answer: unknown): Item[] {
  return Array.isArray(answer) ? (answer as Item[]) : [];
}
