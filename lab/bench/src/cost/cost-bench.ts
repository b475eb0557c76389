import { join } from 'node:path';
import { LIMITS } from '@broomwagon/contracts';
import type { AcquireEntry, RequestStore } from '@broomwagon/state';
import { median, significant } from '../arithmetic';
import { Progress } from '../progress';
import type { Stage } from '../stage';
import { plainTable } from '../table';
import { Build, LABELS } from './build';

/** Checkout of this build: the compiled file is below `<checkout>/dist`. */
const HERE = join(__dirname.slice(0, __dirname.lastIndexOf('dist')), '.');
const POOLS = { ten: 10, some: 64, many: 10_000 } as const;
type Pool = keyof typeof POOLS;
const ROUNDS = 60;
const QUICK_ROUNDS = 15;
/** Operations of one kind in a round. */
const CALLS = 128;
const BATCH = 64;
const BATCHES = 8;
const BURST = 2_048;
/** Live leases of which the memory is measured. */
const LEASES = 10_000;

/** Microseconds of CPU of the main thread of Redis for one operation, in each round. */
interface Row {
  operation: string;
  before: number[];
  after: number[];
}

/** Memory of one live lease with all its indexes. */
interface Bytes {
  before: number;
  after: number;
}

/** Constraints of acquires, by their names in the rows. */
const REQUESTS: Record<string, (index: number) => Partial<AcquireEntry>> = {
  'without constraints': () => ({}),
  'of a session': (index) => ({ sessionId: `session-${index}`, contextTokens: 3_000 }),
  'of a group': (index) => ({ groupId: `group-${index % 16}` }),
  'with constraints': () => ({ labels: LABELS, minWeightVersion: 1 }),
};

/**
 * `bench cost --against DIR`: costs of single operations for Redis in this build and in another build. The builds work
 * in turn, each on a Redis of its own as in production. Only the CPU time of the main thread of Redis counts, so other
 * programs on the machine hardly matter.
 */
export async function benchCost(
  stage: Stage,
  isQuick: boolean,
  against = HERE,
): Promise<{ report: object; text: string }> {
  const connect = async () => (await stage.startRedis()).client;
  const rounds = isQuick ? QUICK_ROUNDS : ROUNDS;
  const cost = new Cost(new Build(against, await connect(), 'before'), new Build(HERE, await connect(), 'after'));
  const progress = new Progress(rounds + 1);
  let bytesPerLease: Bytes;
  try {
    progress.step('filling the pools');
    await cost.prepare();
    for (let round = 0; round < rounds; round++) {
      progress.step(`round ${round + 1} of ${rounds}`);
      await cost.round(round);
    }
    bytesPerLease = await cost.bytesPerLease();
  } finally {
    progress.end();
  }
  const rows = cost.rows.map(summarise);
  const text = `${formatRows(rows)}\nBytes of a live lease: ${bytesPerLease.before} before, ${bytesPerLease.after} after`;
  return { report: { measuredAt: new Date().toISOString(), against, rounds, rows, bytesPerLease }, text };
}

class Cost {
  readonly rows: Row[] = [];

  constructor(
    private readonly before: Build,
    private readonly after: Build,
  ) {}

  async prepare(): Promise<void> {
    for (const build of [this.before, this.after]) {
      await build.loadScripts();
      for (const [pool, servers] of Object.entries(POOLS)) await build.fill(pool, servers);
      await build.admitByKv('kv');
      await build.fill('kv', POOLS.some);
      await build.fill('claims', 0);
    }
  }

  async round(round: number): Promise<void> {
    // The builds take turns to go first, since the first one has colder caches.
    const builds = round % 2 === 0 ? [this.before, this.after] : [this.after, this.before];
    for (const build of builds)
      await this.note(build, 'PING', CALLS, () => this.inTurn(CALLS, () => build.redis.ping()));
    for (const request of Object.keys(REQUESTS)) for (const build of builds) await this.lone(build, 'some', request);
    for (const pool of ['ten', 'many'] as const) {
      for (const build of builds) await this.lone(build, pool, 'without constraints', `, ${POOLS[pool]} servers`);
    }
    for (const build of builds) await this.batches(build);
    for (const pool of ['some', 'kv'] as const) {
      for (const build of builds) await this.sessionBatches(build, pool, round);
    }
    for (const build of builds) await this.burst(build);
    for (const samples of [1, 16]) for (const build of builds) await this.requests(build, samples);
  }

  /** Measures the memory of live leases, each for a request of its own. */
  async bytesPerLease(): Promise<Bytes> {
    const measureBytes = async (build: Build): Promise<number> => {
      const entries = build.entries('ten', LEASES, () => ({}));
      const bytesBefore = await usedBytes(build);
      for (const page of splitPages(entries, BATCH)) granted(await build.leases.acquire('ten', page));
      return Math.round(((await usedBytes(build)) - bytesBefore) / LEASES);
    };
    return { before: await measureBytes(this.before), after: await measureBytes(this.after) };
  }

  private async lone(build: Build, pool: Pool, request: string, note = ''): Promise<void> {
    const items = build.entries(pool, CALLS, REQUESTS[request]!);
    await this.note(build, `acquire ${request}${note}`, CALLS, async () => {
      for (const item of items) granted(await build.leases.acquire(pool, [item]));
    });
    await this.note(build, `release ${request}${note}`, CALLS, async () => {
      for (const { acquireId } of items) await build.leases.release(pool, [{ acquireId }]);
    });
  }

  /** Sends batches one after the other, as the load-balancer forms them from simultaneous single calls. */
  private async batches(build: Build): Promise<void> {
    const pages = splitPages(build.entries('some', BATCHES * BATCH, REQUESTS['without constraints']!), BATCH);
    await this.note(build, `acquire in a batch of ${BATCH}`, BATCHES * BATCH, async () => {
      for (const page of pages) granted(await build.leases.acquire('some', page));
    });
    await this.note(build, `release in a batch of ${BATCH}`, BATCHES * BATCH, async () => {
      for (const page of pages) await build.leases.release('some', page.map(pickAcquireId));
    });
  }

  /** Turns of sessions, whose contexts grow, without and with `sessionAdmission`. */
  private async sessionBatches(build: Build, pool: 'some' | 'kv', round: number): Promise<void> {
    const turn = (index: number) => ({ sessionId: `agent-${index}`, contextTokens: 3_000 + 500 * round });
    const pages = splitPages(build.entries(pool, BATCHES * BATCH, turn), BATCH);
    const note = pool === 'kv' ? ', admitted by KV memory' : '';
    await this.note(build, `acquire of sessions in a batch of ${BATCH}${note}`, BATCHES * BATCH, async () => {
      for (const page of pages) granted(await build.leases.acquire(pool, page));
    });
    await this.note(build, `release of sessions in a batch of ${BATCH}${note}`, BATCHES * BATCH, async () => {
      for (const page of pages) {
        await build.leases.release(
          pool,
          page.map(({ acquireId }) => ({ acquireId, tokens: 300 })),
        );
      }
    });
  }

  /** Sends all pages at once, as for `lb.acquire-many`. */
  private async burst(build: Build): Promise<void> {
    const pages = splitPages(build.entries('some', BURST, REQUESTS['without constraints']!), LIMITS.page);
    await this.note(build, `acquire in a burst of ${BURST}`, BURST, async () => {
      for (const reply of await Promise.all(pages.map((page) => build.leases.acquire('some', page)))) granted(reply);
    });
    await this.note(build, `release in a burst of ${BURST}`, BURST, async () => {
      await Promise.all(pages.map((page) => build.leases.release('some', page.map(pickAcquireId))));
    });
  }

  private async requests(build: Build, samples: number): Promise<void> {
    const job = await build.openRound('claims', CALLS / samples, samples);
    const worker = build.worker('claims', 0);
    const claimed: { requestId: string; attempt: string }[] = [];
    await this.note(build, `claim, groups of ${samples}`, CALLS, async () => {
      for (let call = 0; call < CALLS; call++) {
        const { claims } = await build.requests.claim('claims', { claimId: build.nextId(), ...worker, max: 1, job });
        claimed.push(...claims);
      }
    });
    if (claimed.length !== CALLS) throw new Error(`Only ${claimed.length} of ${CALLS} were claimed`);
    const segment = { serverId: 's', serverEpoch: 'e1', weightVersion: 0, tokenCount: 100, ref: 'r'.repeat(64) };
    const end = ({ requestId, attempt }: { requestId: string; attempt: string }) => {
      const json = JSON.stringify({ ...segment, attempt });
      return { requestId, attempt, segment: json, tokens: 100, finishReason: 'stop' as const };
    };
    await this.note(build, `complete, groups of ${samples}`, CALLS / 2, async () => {
      for (const one of claimed.slice(0, CALLS / 2)) {
        await build.requests.complete('claims', { ...end(one), ...worker } as never);
      }
    });
    const completes = claimed.slice(CALLS / 2).map(end);
    await this.note(build, `complete in a batch of ${CALLS / 2}, groups of ${samples}`, CALLS / 2, async () => {
      // Builds before `requests/complete-many` have one transition for each sample.
      if ('completeMany' in build.requests) {
        await build.requests.completeMany('claims', { ...worker, completes } as never);
      } else {
        for (const one of completes) {
          await (build.requests as RequestStore).complete('claims', { ...one, ...worker } as never);
        }
      }
    });
  }

  private async inTurn(count: number, work: () => Promise<unknown>): Promise<void> {
    for (let call = 0; call < count; call++) await work();
  }

  private async note(build: Build, operation: string, count: number, work: () => Promise<void>): Promise<void> {
    const spentBefore = await spentMicroseconds(build);
    await work();
    const cost = ((await spentMicroseconds(build)) - spentBefore) / count;
    let row = this.rows.find((one) => one.operation === operation);
    if (!row) this.rows.push((row = { operation, before: [], after: [] }));
    row[build === this.before ? 'before' : 'after'].push(cost);
  }
}

async function usedBytes({ redis }: Build): Promise<number> {
  return Number(/used_memory:(\d+)/.exec(await redis.info('memory'))![1]);
}

async function spentMicroseconds({ redis }: Build): Promise<number> {
  const info = await redis.info('cpu');
  const seconds = (kind: string) => Number(new RegExp(`used_cpu_${kind}_main_thread:(\\S+)`).exec(info)![1]);
  return (seconds('user') + seconds('sys')) * 1_000_000;
}

function splitPages(items: readonly AcquireEntry[], size: number): AcquireEntry[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, page) =>
    items.slice(page * size, (page + 1) * size),
  );
}

function pickAcquireId({ acquireId }: AcquireEntry): { acquireId: string } {
  return { acquireId };
}

function granted({ results }: { results: object[] }): void {
  const refused = results.find((result) => !('seq' in result));
  if (refused) throw new Error(`Not granted: ${JSON.stringify(refused)}`);
}

/** Medians over the rounds, and median and quartiles of the ratio within a round. */
function summarise({ operation, before, after }: Row) {
  const ratios = after.map((cost, round) => cost / before[round]!).toSorted((one, other) => one - other);
  return {
    operation,
    beforeMicroseconds: significant(median(before), 3),
    afterMicroseconds: significant(median(after), 3),
    ratio: significant(median(ratios), 3),
    lowerQuartile: significant(ratios[Math.floor(ratios.length / 4)]!, 3),
    upperQuartile: significant(ratios[Math.floor((3 * ratios.length) / 4)]!, 3),
  };
}

function formatRows(rows: readonly ReturnType<typeof summarise>[]): string {
  const cells = rows.map((row) => [
    row.operation,
    String(row.beforeMicroseconds),
    String(row.afterMicroseconds),
    String(row.ratio),
    `${row.lowerQuartile} to ${row.upperQuartile}`,
  ]);
  return plainTable(['operation', 'before, us', 'after, us', 'ratio', 'half of the rounds'], cells);
}
