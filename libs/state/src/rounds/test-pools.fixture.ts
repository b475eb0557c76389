import { roundTerms } from '@broomwagon/policies';
import type { AbortScope, Claim, CloseRoundRequest, Epoch, TailPolicy } from '@broomwagon/contracts';
import { flushPrefix, readToEnd, testPool, testRedisUrl } from '@broomwagon/testing';
import { connectRedis } from '../redis';
import { RedisMemory } from '../redis-memory';
import { RequestStore } from '../requests/request.store';
import { LeaseStore } from '../leases';
import { PoolStore } from '../pools';
import { ServerStore } from '../servers/server.store';
import { WaiterStore } from '../waiters/waiter.store';
import { WorkerStore } from '../workers/worker.store';
import { FunctionRunner } from '../library/function-runner';
import { pagesOfGroups, RoundStore } from './round.store';

const JOB = 'job';

/** Parameters of a round. Defaults are for a short round, as the first ones of a job are. */
export interface TestRound {
  policy: TailPolicy;
  neededGroups: number;
  /** New groups, whose names g0, g1, .. continue the names of earlier steps. Default: as many as are needed. */
  newGroups?: number;
  takeGroups?: number;
  samples?: number;
  minSamples?: number;
  timeoutMs?: number;
  abortScope?: AbortScope;
  workerKind?: string;
  maxTokens?: number;
  /** Hash of the prompt of all its groups. */
  promptHash?: string;
  job?: string;
  /** Step, default 1. Default name of the round: `r<step>`. */
  step?: number;
  roundId?: string;
  trainerEpoch?: Epoch;
}

/** Pools of one test file with their stores, each with a worker that makes the calls of a test. */
export class TestPools {
  readonly redis = connectRedis({ url: this.url });
  readonly memory = new RedisMemory(this.redis);
  private readonly prefix = testPool().pool;
  readonly runner = new FunctionRunner(this.redis, this.prefix, this.memory);
  readonly rounds = new RoundStore(this.runner);
  readonly requests = new RequestStore(this.runner);
  readonly leases = new LeaseStore(this.runner);
  readonly workers = new WorkerStore(this.runner);
  readonly waiters = new WaiterStore(this.runner);
  readonly servers = new ServerStore(this.runner);
  readonly pools = new PoolStore(this.runner);
  pool = '';
  holder = { workerId: 'w', workerEpoch: 'e0' };
  private used = 0;
  private calls = 0;
  private submitted = 0;

  /** @param url address of the test's own Redis, or of the Redis of all tests */
  constructor(private readonly url = testRedisUrl()) {}

  /** Opens a new pool for the next test. */
  async fresh(): Promise<void> {
    this.pool = `pool-${this.used++}`;
    this.submitted = 0;
    const { workerEpoch } = await this.workers.register(this.pool, {
      workerId: 'w',
      registrationId: 'r',
      ttlMs: 600_000,
    });
    this.holder = { workerId: 'w', workerEpoch };
  }

  async close(): Promise<void> {
    await this.redis.quit();
    await flushPrefix(this.url, `${this.prefix}:`);
  }

  key(name: string): string {
    return `${this.runner.rootKey(this.pool)}:${name}`;
  }

  /** Opens a round with groups of the queue and new groups. */
  async open(wanted: TestRound) {
    const { policy, neededGroups, newGroups = neededGroups, takeGroups = 0, samples = 2, maxTokens = 10 } = wanted;
    const {
      job = JOB,
      step = 1,
      roundId = `r${step}`,
      trainerEpoch,
      minSamples,
      timeoutMs,
      abortScope,
      workerKind,
      promptHash,
    } = wanted;
    const kind = takeGroups > 0 && newGroups === 0 ? ('long' as const) : ('short' as const);
    const plan = { planId: `p${step}`, step, kind, neededGroups, takeGroups, newGroups };
    const parameters = {
      policy,
      abortScope,
      workerKind,
      weightVersion: step,
      orphanAfterMs: 600_000,
      ...roundTerms(policy, plan, {}),
    };
    const opened = await this.rounds.open(this.pool, { job, roundId, ...plan, ...parameters, trainerEpoch });
    const round = { job, roundId, trainerEpoch: opened.trainerEpoch };
    for (let { state } = opened; state === 'opening';) ({ state } = await this.rounds.take(this.pool, round));
    const [domain] = Object.keys(policy.domainQuotas ?? {});
    const groups = Array.from({ length: newGroups }, (_, index) => ({
      // Every other group has no domain.
      domain: index % 2 === 0 ? domain : undefined,
      groupId: `g${this.submitted + index}`,
      digest: 'd',
      samples,
      minSamples,
      timeoutMs,
      maxTokens,
      promptHash,
      promptRef: `prompt${this.submitted + index}`,
      sampling: '{}',
    }));
    this.submitted += newGroups;
    for (const page of pagesOfGroups(groups)) await this.rounds.submit(this.pool, round, page);
    return round;
  }

  /** Reads the results of a round and closes it. */
  readAndClose(round: Omit<CloseRoundRequest, 'cursor'>) {
    return readAndClose(this.rounds, this.pool, round);
  }

  async claim(max = 8): Promise<Claim[]> {
    return (await this.requests.claim(this.pool, { claimId: this.unique('c'), ...this.holder, max })).claims;
  }

  /** Attempt and worker epoch of a claim, for calls of its worker. */
  fence({ requestId, attempt }: Claim) {
    return { requestId, attempt, ...this.holder };
  }

  save(claim: Claim, tokens: number) {
    return this.requests.save(this.pool, { ...this.fence(claim), ...buildSegment(claim, tokens) });
  }

  complete(claim: Claim, tokens = 3, stamp?: string) {
    const args = { ...this.fence(claim), ...buildSegment(claim, tokens), finishReason: 'stop' as const, stamp };
    return this.requests.complete(this.pool, args);
  }

  /** Ends an attempt. By default this is no failure of the request. */
  fail(claim: Claim, tokens = 0, as: { countsAsFailure: boolean; retryable: boolean } = ENDED) {
    return this.requests.fail(this.pool, {
      ...this.fence(claim),
      ...buildSegment(claim, tokens),
      reason: 'engine-error',
      ...as,
    });
  }

  /** Number of requests of the job by state. */
  async states(job = JOB) {
    return (await this.rounds.jobStatus(this.pool, { job })).requests;
  }

  unique(name: string): string {
    return `${name}${this.calls++}`;
  }
}

const ENDED = { countsAsFailure: false, retryable: true };

/** Reads all results of a round that exist, and closes it. */
export async function readAndClose(rounds: RoundStore, pool: string, round: Omit<CloseRoundRequest, 'cursor'>) {
  const { job, roundId } = round;
  const { cursor } = await readToEnd((from) => rounds.results(pool, { job, roundId, cursor: from, limit: 128 }));
  return rounds.close(pool, { ...round, cursor });
}

/** Segment of an attempt, as arguments of its reports. Its payload is named after the attempt. */
export function buildSegment({ requestId, attempt, weightVersion }: Claim, tokens: number) {
  const made = { attempt, serverId: 's1', serverEpoch: 'e1', weightVersion, tokenCount: tokens };
  return { segment: JSON.stringify({ ...made, ref: `${requestId}-${attempt}` }), tokens };
}
