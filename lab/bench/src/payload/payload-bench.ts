import { connectNats, MessagingClient, TypedClient } from '@broomwagon/messaging';
import { roundTerms } from '@broomwagon/policies';
import {
  openPayloadStore,
  RequestStore,
  RoundStore,
  FunctionRunner,
  type AttemptFence,
  type PayloadName,
  type PayloadStore,
} from '@broomwagon/state';
import type { Claim, Segment } from '@broomwagon/contracts';
import { formatPayloadRef } from '../../../../libs/state/src/payload/payload-ref';
import { median, medianRatio, significant } from '../arithmetic';
import { Progress } from '../progress';
import { KEY_PREFIX, type PoolState, type Stage } from '../stage';
import { plainTable } from '../table';
import type { BenchWorker } from '../generator/jobs';

const SIZES = [
  { label: '1 kB', bytes: 1_000 },
  { label: '1 MB', bytes: 1_000_000 },
  { label: '10 MB', bytes: 10_000_000 },
] as const;
type Size = (typeof SIZES)[number];
/** Number of payloads stored per size and round, for the first requests. No operation reads them. */
const PAYLOADS = 4;
/** Number of completed groups, and of cut and requeued groups, in one round. */
const GROUPS = 64;

/** Timed operations. `requeue` is the confirmation of a cut or, over NATS, the return of an attempt. */
const OPERATIONS = ['script complete', 'script requeue', 'NATS complete', 'NATS requeue'] as const;
type OperationName = (typeof OPERATIONS)[number];

/** Content of the file of `--json`. */
export interface PayloadReport {
  measuredAt: string;
  rounds: number;
  /** Microseconds of one operation. */
  rows: { operation: OperationName; payload: string; microseconds: number; over1kB: number }[];
  /** Median ratio of the cost of the scripts, which is the queue's own cost. */
  requeue10MBOver1kB: number;
  complete10MBOver1kB: number;
  natsRequeue10MBOver1kB: number;
  natsComplete10MBOver1kB: number;
}

/** `bench payload`: cost of the queue when the payloads behind its references are large. */
export async function benchPayload(stage: Stage, isQuick: boolean): Promise<{ report: PayloadReport; text: string }> {
  await stage.start((line) => console.error(line));
  return measurePayloads(stage, isQuick ? 5 : 15);
}

/** Runs `bench payload` on a started stage. */
export async function measurePayloads(stage: Stage, rounds: number): Promise<{ report: PayloadReport; text: string }> {
  const bench = await PayloadBench.prepare(stage);
  const progress = new Progress(rounds * SIZES.length);
  try {
    await bench.warmUp();
    for (let round = 0; round < rounds; round++) {
      // The sizes take turns to go first, since work after a pause is slower.
      for (const index of SIZES.keys()) {
        const size = SIZES[(index + round) % SIZES.length]!;
        progress.step(`round ${round + 1} of ${rounds}: ${size.label}`);
        await bench.measureScripts(size, `scripts-${round}`);
        await bench.measureNats(size, `nats-${round}`);
      }
    }
  } finally {
    progress.end();
  }
  return bench.report(rounds);
}

class PayloadBench {
  private readonly rounds: RoundStore;
  private readonly requests: RequestStore;
  /** Microseconds of one operation, one value per round. */
  private readonly costs = new Map<string, number[]>();

  private constructor(
    state: PoolState,
    private readonly client: TypedClient,
    private readonly worker: BenchWorker,
    private readonly natsWorker: BenchWorker,
    private readonly payloads: PayloadStore,
  ) {
    const runner = new FunctionRunner(state.redis, KEY_PREFIX);
    this.rounds = new RoundStore(runner);
    this.requests = new RequestStore(runner);
  }

  static async prepare(stage: Stage): Promise<PayloadBench> {
    const { nats, redis } = stage.services;
    const state = stage.state(redis);
    // No coordinator serves the pool of the scripts, so that nothing else cuts and sweeps there.
    const [worker] = await state.fill('scripts', 0, 1);
    const [natsWorker] = await state.fill('nats', 0, 1);
    await stage.startApp('trainer-coordinator', 'trainer-coordinator', ['nats'], redis);
    const connection = await connectNats({ url: nats.url });
    stage.onStop(() => connection.close());
    const client = new TypedClient(new MessagingClient(connection));
    const payloads = await openPayloadStore({ driver: 'redis', url: redis.url, dir: '', keyPrefix: KEY_PREFIX });
    stage.onStop(() => payloads.close());
    return new PayloadBench(state, client, worker!, natsWorker!, payloads);
  }

  /** Has code compiled and scripts loaded; the measured times are dropped. */
  async warmUp(): Promise<void> {
    await this.measureScripts(SIZES[0], 'warm-up');
    await this.measureNats(SIZES[0], 'warm-up');
    this.costs.clear();
  }

  /** Measures a round in which half of the groups is accepted and the other half is cut and queued again. */
  async measureScripts(size: Size, round: string): Promise<void> {
    const pool = 'scripts';
    const claims = await this.openAndClaim(pool, `${round}-${size.bytes}`, this.worker);
    await this.store(size, pool, claims);
    const accepted = claims.slice(0, GROUPS);
    const cut = claims.slice(GROUPS);
    await this.time('script complete', size, accepted, async (claim) => {
      const args = { ...toFence(claim, this.worker), ...this.segmentArgs(pool, claim) };
      await this.requests.complete(pool, { ...args, finishReason: 'stop' });
    });
    const { job, roundId } = claims[0]!;
    let cursor: number | undefined = 0;
    while (cursor !== undefined) ({ cursor } = await this.rounds.cut(pool, { job, roundId, cursor }));
    await this.time('script requeue', size, cut, async (claim) => {
      const args = { ...toFence(claim, this.worker), ...this.segmentArgs(pool, claim) };
      const { state } = await this.requests.fail(pool, {
        ...args,
        reason: 'aborted',
        countsAsFailure: false,
        retryable: true,
      });
      if (state !== 'unfinished') throw new Error(`A cut request is ${state}`);
    });
  }

  /** Measures the operations through the trainer-coordinator: each attempt is returned, claimed again and completed. */
  async measureNats(size: Size, round: string): Promise<void> {
    const pool = 'nats';
    const claims = await this.openAndClaim(pool, `${round}-${size.bytes}`, this.natsWorker);
    await this.store(size, pool, claims);
    await this.time('NATS requeue', size, claims, async (claim) => {
      const body = { ...toFence(claim, this.natsWorker), segment: this.segment(pool, claim) };
      const { state } = await this.client.call(pool, 'request.fail', { ...body, reason: 'shutdown', retryable: true });
      if (state !== 'pending') throw new Error(`A request that was given back is ${state}`);
    });
    const again = await this.claim(pool, `${round}-${size.bytes}-again`, this.natsWorker);
    await this.time('NATS complete', size, again.slice(0, GROUPS), async (claim) => {
      const body = { ...toFence(claim, this.natsWorker), segment: this.segment(pool, claim) };
      await this.client.call(pool, 'request.complete', { ...body, finishReason: 'stop' });
    });
  }

  report(rounds: number): { report: PayloadReport; text: string } {
    const rows = OPERATIONS.flatMap((operation) =>
      SIZES.map((size) => ({
        operation,
        payload: size.label,
        microseconds: significant(median(this.getCosts(operation, size))),
        over1kB: this.over1kB(operation, size),
      })),
    );
    const largest = SIZES[2];
    const report: PayloadReport = {
      measuredAt: new Date().toISOString(),
      rounds,
      rows,
      requeue10MBOver1kB: this.over1kB('script requeue', largest),
      complete10MBOver1kB: this.over1kB('script complete', largest),
      natsRequeue10MBOver1kB: this.over1kB('NATS requeue', largest),
      natsComplete10MBOver1kB: this.over1kB('NATS complete', largest),
    };
    const cells = rows.map(({ operation, payload, microseconds, over1kB }) => [
      operation,
      payload,
      microseconds.toFixed(0),
      over1kB.toFixed(2),
    ]);
    const text = plainTable(['', 'payload', 'us', '/ 1 kB'], cells);
    return { report, text: `\nOne at a time; medians of ${rounds} interleaved rounds\n\n${text}\n` };
  }

  private over1kB(operation: OperationName, size: Size): number {
    return significant(medianRatio(this.getCosts(operation, size), this.getCosts(operation, SIZES[0])));
  }

  private getCosts(operation: OperationName, size: Size): number[] {
    return this.costs.get(`${operation} ${size.label}`)!;
  }

  private async openAndClaim(pool: string, job: string, worker: BenchWorker): Promise<Claim[]> {
    const step = 1;
    const shape = { neededGroups: GROUPS, takeGroups: 0, newGroups: 2 * GROUPS };
    const policy = { name: 'resume', overProvision: 2 } as const;
    const { trainerEpoch } = await this.rounds.open(pool, {
      ...shape,
      ...roundTerms(policy, { ...shape, kind: 'short' }, {}),
      job,
      roundId: 'round',
      planId: `${step}-short-${GROUPS}-${2 * GROUPS}-0`,
      step,
      kind: 'short',
      policy,
      weightVersion: 0,
      orphanAfterMs: 86_400_000,
    });
    const groups = Array.from({ length: 2 * GROUPS }, (_, index) => ({
      groupId: `group-${index}`,
      digest: 'digest',
      samples: 1,
      maxTokens: 1_000,
      promptRef: `redis~${pool}~${job}~prompt~prompt`,
      sampling: '{}',
    }));
    await this.rounds.submit(pool, { job, roundId: 'round', trainerEpoch }, groups);
    return this.claim(pool, job, worker);
  }

  private async claim(pool: string, claimId: string, worker: BenchWorker): Promise<Claim[]> {
    const claims: Claim[] = [];
    while (claims.length < 2 * GROUPS) {
      const args = { claimId: `${claimId}-${claims.length}`, ...worker, max: 2 * GROUPS - claims.length };
      const page = await this.requests.claim(pool, args);
      if (page.claims.length === 0) throw new Error(`Only ${claims.length} requests to claim`);
      claims.push(...page.claims);
    }
    return claims;
  }

  /** Runs `work` for each claim, one at a time, and records the median time. */
  private async time(
    operation: OperationName,
    size: Size,
    claims: readonly Claim[],
    work: (claim: Claim) => Promise<void>,
  ): Promise<void> {
    const microseconds: number[] = [];
    for (const claim of claims) {
      const startedAtMs = performance.now();
      await work(claim);
      microseconds.push((performance.now() - startedAtMs) * 1_000);
    }
    const name = `${operation} ${size.label}`;
    this.costs.set(name, [...(this.costs.get(name) ?? []), median(microseconds)]);
  }

  private async store(size: Size, pool: string, claims: readonly Claim[]): Promise<void> {
    const bytes = Buffer.alloc(size.bytes, 'x');
    for (const claim of claims.slice(0, PAYLOADS)) await this.payloads.put(toPayloadName(pool, claim), bytes);
  }

  private segment(pool: string, claim: Claim): Segment {
    const { attempt } = claim;
    const ref = formatPayloadRef('redis', toPayloadName(pool, claim));
    return { attempt, serverId: 'server-0', serverEpoch: 'e1', weightVersion: 0, tokenCount: 100, ref };
  }

  private segmentArgs(pool: string, claim: Claim): { segment: string; tokens: number } {
    return { segment: JSON.stringify(this.segment(pool, claim)), tokens: 100 };
  }
}

function toPayloadName(pool: string, { job, requestId, attempt }: Claim): PayloadName {
  return { pool, job, owner: requestId, name: `${attempt}` };
}

function toFence({ requestId, attempt }: Claim, worker: BenchWorker): AttemptFence {
  return { requestId, attempt, ...worker };
}
