import type { Claim, LeaseGrant } from '@broomwagon/contracts';
import { ControlPlane, TokenBuffer, toSegment, type Lease } from '@broomwagon/generation';
import { connectNats, MessagingClient, TypedClient } from '@broomwagon/messaging';
import { roundTerms } from '@broomwagon/policies';
import { FunctionRunner, openPayloadStore, RequestStore, RoundStore, type RedisClient } from '@broomwagon/state';
import { Attempt } from '../../../../apps/worker/src/attempts/attempt';
import { PartialSaver } from '../../../../apps/worker/src/attempts/partial-saver';
import { SegmentSaver } from '../../../../apps/worker/src/attempts/segment-saver';
import { WorkerConfig } from '../../../../apps/worker/src/worker.config';
import { median, significant } from '../arithmetic';
import { Progress } from '../progress';
import { KEY_PREFIX, type Stage } from '../stage';
import { plainTable } from '../table';

const POOL = 'saves';
/** Attempts whose saves are due together. */
const ATTEMPTS = 128;
const TOKENS = 1_000;
const SAMPLES = 16;
const LEASE = { serverId: 's1', epoch: 'e1', weightVersion: 1 } as LeaseGrant as Lease;
const WAYS = ['gathered', 'single'] as const;
type Way = (typeof WAYS)[number];

/** Content of the file of `--json`. */
export interface SavesReport {
  measuredAt: string;
  rounds: number;
  /** Microseconds of CPU for one save of 1,000 tokens. */
  rows: { way: Way; logprobs: boolean; workerUs: number; redisUs: number }[];
}

/**
 * `bench saves`: CPU of a worker and of Redis for a save of 1,000 tokens: with a payload and a message of its own, as
 * `request.save` needs, and with the saves of all attempts together.
 */
export async function benchSaves(stage: Stage, isQuick: boolean): Promise<{ report: SavesReport; text: string }> {
  await stage.start((line) => console.error(line));
  const { nats, redis } = stage.services;
  const state = stage.state(redis);
  const [worker] = await state.fill(POOL, 0, 1);
  await stage.startApp('trainer-coordinator', 'trainer-coordinator', [POOL], redis);
  const connection = await connectNats({ url: nats.url });
  stage.onStop(() => connection.close());
  const payloads = await openPayloadStore({
    driver: 'redis',
    url: redis.url,
    dir: '',
    keyPrefix: KEY_PREFIX,
    quotaBytes: 1e12,
  });
  stage.onStop(() => payloads.close());

  const config = Object.assign(new WorkerConfig(), { pool: POOL, ...worker, partialSaveIntervalMs: 86_400_000 });
  const controlPlane = new ControlPlane(new TypedClient(new MessagingClient(connection)), POOL);
  const segments = new SegmentSaver(payloads, config);
  const rounds = isQuick ? 5 : 15;
  const costs = new Map<string, { workerUs: number[]; redisUs: number[] }>();
  const progress = new Progress(4 * rounds);
  for (const logprobs of [false, true]) {
    const claims = await claimAll(state.redis, `job-${String(logprobs)}`, worker!);
    const attempts = claims.map((claim) => new Attempt(claim, worker!));
    const half = attempts.length / 2;
    const saver = new PartialSaver(controlPlane, segments, config);
    const one = addTokens(new TokenBuffer([], false), logprobs);
    const buffers = attempts.map(() => new TokenBuffer([], false));
    const gathered = attempts.slice(0, half);
    const running = gathered.map((attempt, index) => saver.start(attempt, LEASE, buffers[index]!));
    const single = async (attempt: Attempt, tokens: TokenBuffer, round: number): Promise<void> => {
      // A save with no more tokens than the save before would be an older message.
      const made = { ...toSegment(tokens), tokenCount: TOKENS + round };
      const segment = await segments.save(attempt, LEASE, made);
      const body = { ...attempt.identity, segment, serverId: LEASE.serverId };
      await controlPlane.callWithRetry('request.save', body, { deadlineMs: 60_000 });
    };
    const ways: Record<Way, (round: number) => Promise<unknown>> = {
      gathered: () => saver.saveAll(),
      single: (round) => Promise.all(attempts.slice(half).map((attempt) => single(attempt, one, round))),
    };
    // Gathered saves go first: the coordinator removes what single saves have replaced.
    for (const way of WAYS) {
      const known = { workerUs: [] as number[], redisUs: [] as number[] };
      costs.set(`${way} ${String(logprobs)}`, known);
      // The first rounds compile the code.
      for (let round = -3; round < rounds; round++) {
        if (round >= 0) progress.step(`${way}, round ${round + 1} of ${rounds}`);
        for (const buffer of buffers.slice(0, half)) addTokens(buffer, logprobs);
        const cost = await measure(state.redis, () => ways[way](round + 3));
        if (round < 0) continue;
        known.workerUs.push(cost.workerUs / half);
        known.redisUs.push(cost.redisUs / half);
      }
    }
    await Promise.all(running.map((saves) => saves.stop()));
  }
  progress.end();
  const rows = [false, true].flatMap((logprobs) =>
    WAYS.map((way) => {
      const { workerUs, redisUs } = costs.get(`${way} ${String(logprobs)}`)!;
      return { way, logprobs, workerUs: significant(median(workerUs)), redisUs: significant(median(redisUs)) };
    }),
  );
  const cells = rows.map(({ way, logprobs, workerUs, redisUs }) => [
    way,
    logprobs ? 'ids, text, logprobs' : 'ids, text',
    String(workerUs),
    String(redisUs),
  ]);
  const text = plainTable(['save of 1,000 tokens', 'content', 'worker us', 'Redis us'], cells);
  return { report: { measuredAt: new Date().toISOString(), rounds, rows }, text };
}

function addTokens(buffer: TokenBuffer, hasLogprobs: boolean): TokenBuffer {
  const tokenIds = Array.from({ length: TOKENS }, (_, index) => 1_000 + 97 * index);
  const logprobs = hasLogprobs ? tokenIds.map((id) => -Math.fround(id / 100_000)) : undefined;
  buffer.take({ text: 'word'.repeat(TOKENS), tokenIds, logprobs, tokenCount: TOKENS });
  return buffer;
}

/** CPU time of this process and of the main thread of Redis for some work. */
async function measure(redis: RedisClient, work: () => Promise<unknown>) {
  const redisBefore = await readRedisUs(redis);
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return { workerUs: user + system, redisUs: (await readRedisUs(redis)) - redisBefore };
}

async function readRedisUs(redis: RedisClient): Promise<number> {
  const info = await redis.info('cpu');
  const seconds = (kind: string) => Number(new RegExp(`used_cpu_${kind}_main_thread:(\\S+)`).exec(info)![1]);
  return (seconds('user') + seconds('sys')) * 1e6;
}

async function claimAll(redis: RedisClient, job: string, worker: { workerId: string; workerEpoch: string }) {
  const runner = new FunctionRunner(redis, KEY_PREFIX);
  const [rounds, requests] = [new RoundStore(runner), new RequestStore(runner)];
  const neededGroups = (2 * ATTEMPTS) / SAMPLES;
  const shape = { neededGroups, takeGroups: 0, newGroups: neededGroups };
  const policy = { name: 'resume', overProvision: 1 } as const;
  const { trainerEpoch } = await rounds.open(POOL, {
    ...shape,
    ...roundTerms(policy, { ...shape, kind: 'short' }, {}),
    job,
    roundId: 'round',
    planId: 'plan',
    step: 1,
    kind: 'short',
    policy,
    weightVersion: 0,
    orphanAfterMs: 86_400_000,
  });
  const groups = Array.from({ length: neededGroups }, (_, index) => ({
    groupId: `group-${index}`,
    digest: 'digest',
    samples: SAMPLES,
    maxTokens: 100_000,
    promptRef: `redis~${POOL}~${job}~prompt~prompt`,
    sampling: '{}',
  }));
  await rounds.submit(POOL, { job, roundId: 'round', trainerEpoch }, groups);
  const claims: Claim[] = [];
  while (claims.length < 2 * ATTEMPTS) {
    claims.push(...(await requests.claim(POOL, { claimId: `${job}-${claims.length}`, ...worker, max: 128 })).claims);
  }
  return claims;
}
