import type { Claim, Epoch, RoundPlan, Segment, TailPolicy } from '@broomwagon/contracts';
import type { TypedClient } from '@broomwagon/messaging';
import { readToEnd } from '@broomwagon/testing';
import type { RedisClient } from '@broomwagon/state';
import { formatPayloadRef } from '../../../../libs/state/src/payload/payload-ref';
import { median, medianRatio } from '../arithmetic';
import type { BenchWorker } from '../generator/jobs';
import { KEY_PREFIX } from '../stage';

/** Groups that a round takes; half of them are accepted. */
const GROUPS_PER_STEP = 64;
const POLICY: TailPolicy = { name: 'resume', overProvision: 2 };
const TEMPLATE = 'template';
const COPIES_PER_CALL = 500;

/** Operations on the queue in one step; the costs of `take` and `requeue` are per group. */
const OPERATIONS = ['plan', 'take', 'list', 'requeue', 'close'] as const;
type Operation = (typeof OPERATIONS)[number];

/**
 * Copies a group as the scripts have stored it: every key named after the group is copied once per copy, under the
 * copy's name, and the copy is added to every sorted set with the group. KEYS: the group's keys, then the sorted sets.
 */
const COPY = `
local names, sets = tonumber(ARGV[1]), #KEYS - tonumber(ARGV[1])
local template = ARGV[2]
local scores = {}
for index = 1, sets do scores[index] = redis.call('ZSCORE', KEYS[names + index], template) end
for copy = tonumber(ARGV[3]), tonumber(ARGV[4]) do
  local id = string.format('copy-%d', copy)
  for index = 1, names do redis.call('COPY', KEYS[index], (string.gsub(KEYS[index], template, id))) end
  for index = 1, sets do redis.call('ZADD', KEYS[names + index], scores[index] + copy, id) end
end`;

/** A job with so many groups in its long-tail queue, and the costs of its steps. */
export class LongQueue {
  private readonly costs = new Map<Operation, number[]>(OPERATIONS.map((operation) => [operation, []]));
  private trainerEpoch?: Epoch;
  private step = 0;

  constructor(
    private readonly client: TypedClient,
    private readonly redis: RedisClient,
    private readonly pool: string,
    private readonly worker: BenchWorker,
    readonly groups: number,
  ) {}

  private get job(): string {
    return `queue-${this.groups}`;
  }

  /** Fills the queue: one group is queued by a cut as in production, the others are copies of it. */
  async fill(): Promise<void> {
    const plan: RoundPlan = { planId: 'first', step: 1, kind: 'short', neededGroups: 1, newGroups: 2, takeGroups: 0 };
    await this.open(plan);
    const groups = ['accepted', TEMPLATE].map((groupId) => ({
      groupId,
      samples: 1,
      maxTokens: 100,
      prompt: { text: 'x' },
    }));
    const { job, pool, trainerEpoch } = this;
    await this.client.call(pool, 'round.submit', { job, roundId: 'round-1', trainerEpoch: trainerEpoch!, groups });
    const [claim] = await this.claim(1);
    await this.client.call(pool, 'request.complete', { ...this.fence(claim!), finishReason: 'stop' });
    await this.settled(1);
    await this.closeRound();

    const root = `${KEY_PREFIX}:{${pool}}:`;
    const keys = await this.redis.keys(`${root}*${job}*`);
    const named = keys.filter((key) => key.includes(TEMPLATE));
    const sets: string[] = [];
    for (const key of keys) {
      if ((await this.redis.type(key)) !== 'zset') continue;
      if ((await this.redis.zscore(key, TEMPLATE)) !== null) sets.push(key);
    }
    for (let first = 2; first <= this.groups; first += COPIES_PER_CALL) {
      const last = Math.min(this.groups, first + COPIES_PER_CALL - 1);
      await this.redis.eval(COPY, named.length + sets.length, ...named, ...sets, named.length, TEMPLATE, first, last);
    }
    await this.redis.hincrby(`${root}job-counts:${job}`, 'submitted', this.groups - 1);
    await this.redis.hincrby(`${root}job-counts:${job}`, 'unfinished', this.groups - 1);
    await this.settled(this.groups);
  }

  /** Runs a long round: half of the taken groups are accepted, the others cut and queued again. */
  async measure(): Promise<void> {
    const { job, pool } = this;
    const whole = await this.time('plan', () =>
      this.client.call(pool, 'round.next', { job, groupsPerStep: GROUPS_PER_STEP, remainingGroups: 0, policy: POLICY }),
    );
    const plan = { ...whole, neededGroups: GROUPS_PER_STEP / 2 };
    await this.time('take', () => this.open(plan), plan.takeGroups);
    const { groups } = await this.time('list', () => this.client.call(pool, 'longtail.list', { job }));
    if (groups.length === 0) throw new Error('The queue is empty');
    const claims = await this.claim(plan.takeGroups);
    for (const claim of claims.slice(0, plan.neededGroups)) {
      await this.client.call(pool, 'request.complete', { ...this.fence(claim), finishReason: 'stop' });
    }
    const cut = claims.slice(plan.neededGroups);
    await this.time(
      'requeue',
      async () => {
        for (const claim of cut) {
          const body = { ...this.fence(claim), reason: 'aborted' as const, retryable: true };
          const { state } = await this.client.call(pool, 'request.fail', body);
          if (state !== 'unfinished') throw new Error(`A cut request is ${state}`);
        }
      },
      cut.length,
    );
    await this.time('close', () => this.closeRound());
  }

  /** Microseconds of each operation. */
  computeCosts(): { operation: Operation; microseconds: number }[] {
    return OPERATIONS.map((operation) => ({ operation, microseconds: median(this.costs.get(operation)!) }));
  }

  /** Cost of a step (the sum over its operations) as a multiple of the cost with the other queue. */
  over(other: LongQueue): number {
    return medianRatio(this.totals(), other.totals());
  }

  forget(): void {
    for (const operation of OPERATIONS) this.costs.set(operation, []);
  }

  private totals(): number[] {
    const [first, ...others] = OPERATIONS.map((operation) => this.costs.get(operation)!);
    return first!.map((value, round) => others.reduce((sum, values) => sum + values[round]!, value));
  }

  private async time<Result>(operation: Operation, work: () => Promise<Result>, count = 1): Promise<Result> {
    const startedAtMs = performance.now();
    const result = await work();
    this.costs.get(operation)!.push(((performance.now() - startedAtMs) * 1_000) / count);
    return result;
  }

  private async open({ planId, step, kind, neededGroups, newGroups, takeGroups }: RoundPlan): Promise<void> {
    if (kind === 'done') throw new Error('Nothing is left to train');
    const { job, trainerEpoch } = this;
    this.step = step;
    const shape = { planId, step, kind, neededGroups, newGroups, takeGroups };
    const body = { ...shape, job, roundId: `round-${step}`, policy: POLICY, weightVersion: 0, trainerEpoch };
    ({ trainerEpoch: this.trainerEpoch } = await this.client.call(this.pool, 'round.open', body));
  }

  private async closeRound(): Promise<void> {
    const { job, trainerEpoch, step } = this;
    const round = { job, roundId: `round-${step}`, trainerEpoch: trainerEpoch! };
    const { cursor } = await readToEnd((from) =>
      this.client.call(this.pool, 'round.results', { ...round, cursor: from }),
    );
    await this.client.call(this.pool, 'round.close', { ...round, cursor });
  }

  private async claim(max: number): Promise<Claim[]> {
    const claimId = `${this.job}-${this.step}`;
    const { claims } = await this.client.call(this.pool, 'request.claim', { claimId, ...this.worker, max });
    if (claims.length !== max) throw new Error(`Only ${claims.length} of ${max} requests were claimed`);
    await Promise.all(claims.map((claim) => this.storeTokens(claim)));
    return claims;
  }

  /** A segment whose payload is not in the store is refused. */
  private async storeTokens({ requestId, attempt }: Claim): Promise<void> {
    const chunk = { chunkIndex: 0, chunkCount: 1, data: Buffer.from('{}').toString('base64') };
    await this.client.call(this.pool, 'payload.put', { job: this.job, requestId, name: `${attempt}`, ...chunk });
  }

  private fence({ requestId, attempt }: Claim) {
    const payload = { pool: this.pool, job: this.job, owner: requestId, name: `${attempt}` };
    const ref = formatPayloadRef('redis', payload);
    const segment: Segment = { attempt, serverId: 's', serverEpoch: 'e1', weightVersion: 0, tokenCount: 10, ref };
    return { requestId, attempt, ...this.worker, segment };
  }

  private async settled(groups: number): Promise<void> {
    const endsAtMs = performance.now() + 30_000;
    for (;;) {
      const stats = await this.client.call(this.pool, 'longtail.stats', { job: this.job });
      if (stats.groups === groups) return;
      if (performance.now() > endsAtMs) throw new Error(`The queue holds ${stats.groups} groups, not ${groups}`);
    }
  }
}
