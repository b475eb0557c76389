import {
  encodeComposedId,
  encodeId,
  isBroomwagonError,
  type Claim,
  type CloseRoundRequest,
  type CompleteReply,
  type Epoch,
  type GroupSubmission,
  type OpenRoundReply,
  type OpenRoundRequest,
  type OperationName,
  type ReplyOf,
  type RequestOf,
  type RoundPlan,
  type Segment,
  type TailPolicy,
} from '@broomwagon/contracts';
import { connectNats, MessagingClient, TypedClient, type RequestOptions } from '@broomwagon/messaging';
import type { RunningService } from '@broomwagon/platform';
import { connectRedis, FunctionRunner, RoundStore, WorkerStore } from '@broomwagon/state';
import { flushPrefix, readToEnd, testNatsUrl, testPool, testRedisUrl, waitUntil } from '@broomwagon/testing';
import { bootstrapService } from '../../../libs/platform/src/service/bootstrap';
import { formatPayloadRef } from '../../../libs/state/src/payload/payload-ref';
import { CoordinatorConfig } from './coordinator.config';
import { CoordinatorModule } from './coordinator.module';

/** Pools of one fixture; each test takes one. */
const POOLS = 24;

/** Two replicas of the coordinator, a client, and the scripts of the load-balancer for worker epochs. */
export class CoordinatorFixture {
  private used = 0;
  private jobs = 0;

  private constructor(
    private readonly prefix: string,
    readonly runner: FunctionRunner,
    readonly client: TypedClient,
    readonly redis: ReturnType<typeof connectRedis>,
    readonly workers: WorkerStore,
    readonly rounds: RoundStore,
    private readonly services: RunningService[],
  ) {
    this.lookAfterPool();
  }

  static async start(replicas = 2, settings: Partial<CoordinatorConfig> = {}): Promise<CoordinatorFixture> {
    const { pool: prefix } = testPool();
    const config = Object.assign(new CoordinatorConfig(), {
      natsUrl: testNatsUrl(),
      redisUrl: testRedisUrl(),
      redisKeyPrefix: prefix,
      // Pools of its own, so that no coordinator of another test answers.
      pools: Array.from({ length: POOLS }, (_, position) => `${prefix}-${position}`),
      sweepIntervalMs: 20,
      cutRepeatMs: 100,
      payloadDeleteAfterMs: 1,
      redisLossWindowMs: 1,
      claimAnswerKeptMs: 5_000,
      logLevel: 'silent',
      ...settings,
    });
    const services: RunningService[] = [];
    for (let replica = 0; replica < replicas; replica++) {
      services.push(
        await bootstrapService(CoordinatorModule, {
          app: 'trainer-coordinator',
          config,
          configType: CoordinatorConfig,
        }),
      );
    }
    const redis = connectRedis({ url: testRedisUrl() });
    const runner = new FunctionRunner(redis, prefix);
    const client = new TypedClient(new MessagingClient(await connectNats({ url: testNatsUrl() })));
    const [workers, rounds] = [new WorkerStore(runner), new RoundStore(runner)];
    return new CoordinatorFixture(prefix, runner, client, redis, workers, rounds, services);
  }

  /** The pool of this test. */
  get pool(): string {
    return `${this.prefix}-${this.used}`;
  }

  /** One call in the pool of this test. */
  call<Name extends OperationName>(
    operation: Name,
    body: RequestOf<Name>,
    options?: RequestOptions,
  ): Promise<ReplyOf<Name>> {
    // Longer than a busy machine stalls.
    return this.client.call(this.pool, operation, body, { timeoutMs: 60_000, ...options });
  }

  get rootKey(): string {
    return this.runner.rootKey(this.pool);
  }

  /**
   * Value of a metric for this pool, summed over the replicas; with `label`, only of lines that contain the label.
   * @throws Error if the metric has no label `pool`
   */
  async metric(name: string, label = ''): Promise<number> {
    const pages = this.services.map(async ({ httpPort }) =>
      (await fetch(`http://127.0.0.1:${httpPort}/metrics`)).text(),
    );
    const lines = (await Promise.all(pages)).join('\n').split('\n');
    const named = lines.filter((line) => line.startsWith(`${name}{`));
    if (named.length > 0 && !named.some((line) => line.includes('pool="')))
      throw new Error(`${name} has no label pool`);
    const own = named.filter((line) => line.includes(`pool="${this.pool}"`) && line.includes(label));
    return own.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  }

  /** Continues with an empty pool. */
  freshPool(): void {
    this.used += 1;
    if (this.used >= POOLS) throw new Error('Give the fixture more pools');
    this.lookAfterPool();
  }

  /** Limits periodic work to the pool of this test: in other pools it would keep a core busy with nothing. */
  private lookAfterPool(): void {
    for (const { config } of this.services) config.pools = [this.pool];
  }

  /** Number of parked claims. */
  waitingClaims(): Promise<number> {
    return this.redis.hlen(`${this.runner.rootKey(this.pool)}:waiters:claim`);
  }

  async stop(): Promise<void> {
    for (const service of this.services) await service.close();
    await this.client.messaging.connection.close();
    await this.redis.quit();
    await flushPrefix(testRedisUrl(), `${this.prefix}:`);
  }

  /** A segment of the claim, under the reference that its payload would have. */
  buildSegment(claim: Claim, tokenCount: number): Segment {
    const { attempt, weightVersion, job, requestId } = claim;
    const ref = formatPayloadRef('redis', {
      pool: this.pool,
      job: encodeId(job),
      owner: encodeComposedId(requestId),
      name: String(attempt),
    });
    return { attempt, serverId: 's1', serverEpoch: 'e1', weightVersion, tokenCount, ref };
  }

  /** Stores a text as the payload of a claim, and returns its reference. */
  async put({ job, requestId, attempt }: Claim, text: string): Promise<string> {
    const payload = { job, requestId, name: `${attempt}`, chunkIndex: 0, chunkCount: 1 };
    const data = Buffer.from(text).toString('base64');
    return (await this.call('payload.put', { ...payload, data })).ref!;
  }

  /** Waits until every freed payload is removed. */
  async removed(): Promise<void> {
    const queues = ['freed', 'awaiting'].map((name) => `${this.rootKey}:payloads:${name}`);
    await waitUntil(async () => (await this.redis.exists(...queues)) === 0, {
      what: 'freed payloads to be removed',
      timeoutMs: 20_000,
    });
  }

  /** Reference of the prompt of a stored group. */
  async promptRef(job: string, groupId: string): Promise<string> {
    return (await this.redis.hget(`${this.rootKey}:group:${job}/${groupId}`, 'promptRef'))!;
  }

  async worker(workerId: string): Promise<FixtureWorker> {
    const { workerEpoch } = await this.workers.register(this.pool, {
      workerId: encodeId(workerId),
      registrationId: `r-${Math.random()}`,
      ttlMs: 600_000,
    });
    return new FixtureWorker(this, workerId, workerEpoch);
  }

  /** Opens the round that `round.next` plans. */
  async open(
    job: string,
    input: {
      groupsPerStep: number;
      remainingGroups: number;
      policy: TailPolicy;
      trainerEpoch?: Epoch;
      /** Default: derived from the step. */
      roundId?: string;
    },
  ): Promise<OpenRoundReply & { plan: RoundPlan }> {
    const { trainerEpoch, roundId, ...wanted } = input;
    const plan = await this.call('round.next', { job, ...wanted });
    const opened = await this.client.callWithRetry(
      this.pool,
      'round.open',
      openRequest(job, plan, input.policy, { trainerEpoch, ...(roundId !== undefined && { roundId }) }),
      { deadlineMs: 5_000 },
    );
    return { ...opened, plan };
  }

  /** Reads all results of a round and closes it. */
  async close(
    round: { job: string; roundId: string; trainerEpoch: CloseRoundRequest['trainerEpoch'] },
    pool = this.pool,
  ) {
    const { cursor } = await readToEnd((from) =>
      this.client.call(pool, 'round.results', { ...round, cursor: from, limit: 128 }),
    );
    return this.client.call(pool, 'round.close', { ...round, cursor });
  }

  /** Sets the deadline of a round to now. */
  async deadlineComes({ job, roundId }: { job: string; roundId: string }): Promise<void> {
    await this.redis.zadd(`${this.rootKey}:rounds:deadlines`, 'XX', 1, `${job}/${roundId}`);
  }

  newJob(): string {
    return `job-${this.jobs++}`;
  }

  /** A job with an open round of new groups, all needed unless the policy over-provisions. */
  async openRound(policy: TailPolicy, needed: number, remaining = needed) {
    const job = this.newJob();
    const opened = await this.open(job, { groupsPerStep: needed, remainingGroups: remaining, policy });
    const round = { job, roundId: opened.roundId, trainerEpoch: opened.trainerEpoch };
    return { job, round, plan: opened.plan };
  }

  /** Waits until the round is settled and folded: nothing of it is left to sweep. */
  async swept(): Promise<void> {
    await waitUntil(async () => (await this.rounds.due(this.pool)).rounds.length === 0, {
      what: 'the sweep to have nothing left',
      timeoutMs: 20_000,
    });
  }
}

/** The request that opens the planned round. */
export function openRequest(
  job: string,
  plan: RoundPlan,
  policy: TailPolicy,
  extra: Partial<OpenRoundRequest> = {},
): OpenRoundRequest {
  const { kind, choice: _, newByDomain: _byDomain, ...rest } = plan;
  if (kind === 'done') throw new Error('The data set is trained');
  return { job, roundId: `round-${plan.step}`, weightVersion: plan.step, policy, kind, ...rest, ...extra };
}

/** Groups with small inline prompts. */
export function groups(count: number, from = 0, samples = 2): GroupSubmission[] {
  return Array.from({ length: count }, (_, offset) => ({
    groupId: `g${from + offset}`,
    samples,
    maxTokens: 100,
    prompt: { text: `What is ${from + offset}?` },
  }));
}

/** A worker epoch that makes the calls of a test. */
export class FixtureWorker {
  private claims = 0;

  constructor(
    private readonly fixture: CoordinatorFixture,
    readonly workerId: string,
    readonly workerEpoch: Epoch,
  ) {}

  get identity() {
    return { workerId: this.workerId, workerEpoch: this.workerEpoch };
  }

  async claim(max: number, waitMs = 0): Promise<Claim[]> {
    const claimId = `${this.workerId}-${this.workerEpoch}-${this.claims++}`;
    const body = { claimId, ...this.identity, max, waitMs };
    return (await this.fixture.call('request.claim', body)).claims;
  }

  fence({ requestId, attempt }: Claim) {
    return { requestId, attempt, ...this.identity };
  }

  /** Completes a claim. Stores a payload for its tokens first, unless the claim has one. */
  async complete(claim: Claim, tokenCount = 3, finishReason: 'stop' | 'length' = 'stop'): Promise<CompleteReply> {
    const { client, pool } = this.fixture;
    await this.fixture.put(claim, 'tokens').catch((error: unknown) => {
      if (!isBroomwagonError(error, 'PAYLOAD_EXISTS')) throw error;
    });
    const body = {
      ...this.fence(claim),
      finishReason,
      segment: this.fixture.buildSegment(claim, tokenCount),
    };
    return client.call(pool, 'request.complete', body);
  }

  /** Claims and completes until nothing is pending. */
  async finishAll(): Promise<void> {
    for (;;) {
      const claims = await this.claim(128);
      if (claims.length === 0) return;
      for (const claim of claims) await this.complete(claim);
    }
  }
}
