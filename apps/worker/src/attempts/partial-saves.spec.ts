import { BroomwagonError, isBroomwagonError, type Claim, type OperationName } from '@broomwagon/contracts';
import { ControlPlane, TokenBuffer, toSegment } from '@broomwagon/generation';
import { openPayloadStore, type PayloadStore, type SaveManyArgs } from '@broomwagon/state';
import { flushPrefix, testRedisUrl } from '@broomwagon/testing';
import { Logger } from '@nestjs/common';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, inject, it, vi } from 'vitest';
import { decisions } from '../../../../lab/models/src/rounds/interleave.fixture';
import { KeySnapshot } from '../../../../libs/state/src/rounds/key-snapshot.fixture';
import { TestPools } from '../../../../libs/state/src/rounds/test-pools.fixture';
import { LEASE, MemoryPayloadStore } from '../worker.fixture';
import { WorkerConfig } from '../worker.config';
import { Attempt } from './attempt';
import { AttemptLoader, MissingSegmentError } from './attempt-loader';
import { PartialSaver, type RunningSaves } from './partial-saver';
import { SegmentSaver } from './segment-saver';

const RUNS = 40 * inject('runsFactor');
const STEPS = 40;
const REQUESTS = 3;
const LONG_MS = 600_000;
vi.setConfig({ testTimeout: 60_000 + RUNS * 5_000 });

const test = new TestPools();
const PAYLOADS = `payloads-of-${test.runner.rootKey('').replaceAll(/\W/g, '')}`;
let payloads: PayloadStore;
beforeAll(async () => {
  Logger.overrideLogger(false);
  payloads = await openPayloadStore({ driver: 'redis', url: testRedisUrl(), dir: '', keyPrefix: PAYLOADS });
});
afterAll(async () => {
  await payloads.close();
  await flushPrefix(testRedisUrl(), `${PAYLOADS}:`);
  await test.close();
});

interface Held {
  attempt: Attempt;
  tokens: TokenBuffer;
  saves: RunningSaves;
  /** Tokens of earlier attempts. */
  earlier: number;
}

/** One worker after the other, whose messages to Redis may be lost or repeated, as may be the answers. */
class World {
  readonly held = new Map<string, Held>();
  isPayloadLost = false;
  private readonly sent: SaveManyArgs[] = [];
  private state: KeySnapshot | undefined;
  private stored: KeySnapshot | undefined;
  private saver!: PartialSaver;
  private readonly config = Object.assign(new WorkerConfig(), {
    pool: test.pool,
    partialSaveIntervalMs: LONG_MS,
    waitingAfterMs: LONG_MS,
  });

  constructor(private readonly decide: (choices: number) => number) {}

  async start(): Promise<void> {
    await test.open({
      policy: { name: 'resume', overProvision: 1, maxReturns: 1_000 },
      neededGroups: REQUESTS,
      samples: 1,
      maxTokens: 99_999,
    });
    await this.take();
  }

  /** Most saves are pieces: attempts that die, and set-backs, are rarer than saves. */
  readonly actions = [
    ...Array.from({ length: 8 }, () => async () => this.save()),
    async () => this.generate(),
    async () => this.repeatOld(),
    async () => this.die(),
    async () => void (this.state = await KeySnapshot.of(test.redis, test.key(''))),
    async () => void (await this.state?.restore()),
    async () => void (this.stored = await KeySnapshot.of(test.redis, `${PAYLOADS}:`)),
    async () => this.losePayloads(),
  ];

  /** A new worker claims the request, with the saved tokens of the dead worker. */
  async die(): Promise<void> {
    for (const { saves } of this.held.values()) await saves.stop();
    this.held.clear();
    const { workerEpoch } = await test.workers.register(test.pool, {
      workerId: 'w',
      registrationId: test.unique('r'),
      ttlMs: LONG_MS,
    });
    test.holder.workerEpoch = workerEpoch;
    for await (const _ of test.requests.whileMore('expiredAttempts', test.pool));
    await this.take();
  }

  /** Ends each request, and reads its response. */
  async finish(): Promise<void> {
    // Attempts that Redis has forgotten are claimed again.
    await this.die();
    for (const { attempt, tokens, saves } of this.held.values()) {
      tokens.take({ text: '', tokenIds: [], tokenCount: 0, isLast: true });
      await saves.stop();
      const { requestId } = attempt.claim;
      const segment = await new SegmentSaver(payloads, this.config).save(attempt, LEASE, toSegment(tokens));
      const end = { segment: JSON.stringify(segment), tokens: segment.tokenCount, finishReason: 'stop' as const };
      await test.requests.complete(test.pool, { ...test.fence(attempt.claim), ...end });
      const { segments } = await test.requests.segments(test.pool, { requestId });
      const ids: number[] = [];
      for (const { ref } of segments) {
        const bytes = await payloads.get(ref).catch((error: unknown) => this.requireLost(error));
        if (bytes === undefined) return;
        ids.push(...(JSON.parse(String(bytes)) as { tokenIds: number[] }).tokenIds);
      }
      expect(ids).toEqual(ids.map((_, index) => index));
      const made = segments.reduce((sum, { tokenCount }) => sum + tokenCount, 0);
      expect(made).toBe(ids.length);
    }
  }

  /** No payload that is named is freed. */
  async checkFreed(): Promise<void> {
    const freed = new Set(await test.redis.zrange(test.key('payloads:freed'), '0', '-1'));
    for (let index = 0; index < REQUESTS; index++) {
      const fields = await test.redis.hgetall(test.key(`request:job/g${index}/0`));
      const named = Object.values(fields).join('');
      for (const ref of freed) expect(named).not.toContain(`"${ref}"`);
    }
  }

  private async take(): Promise<void> {
    this.saver = new PartialSaver(this.controlPlane, new SegmentSaver(payloads, this.config), this.config);
    for (;;) {
      const claims = await test.claim();
      if (claims.length === 0) return;
      for (const claim of claims) await this.resume(claim);
    }
  }

  private async resume(claim: Claim): Promise<void> {
    const attempt = new Attempt({ ...claim, promptRef: await this.promptOf(claim) }, { ...test.holder });
    const loader = new AttemptLoader(payloads, this.config, this.controlPlane);
    let earlier = 0;
    try {
      const { made } = await loader.load(attempt);
      earlier = made?.tokenCount ?? 0;
      expect(made?.tokenIds ?? []).toEqual(Array.from({ length: earlier }, (_, index) => index));
      expect(made?.text ?? '').toBe('x'.repeat(earlier));
    } catch (error) {
      if (!(error instanceof MissingSegmentError)) throw error;
      this.requireLost(error.cause);
      const failure = { reason: 'payload' as const, retryable: true, countsAsFailure: false, tokens: 0 };
      await test.requests.fail(test.pool, { ...test.fence(claim), ...failure, missingRef: error.ref });
      return;
    }
    const tokens = new TokenBuffer([], false);
    const saves = this.saver.start(attempt, LEASE as never, tokens);
    this.held.set(claim.requestId, { attempt, tokens, saves, earlier });
  }

  private async promptOf({ job }: Claim): Promise<string> {
    const name = { pool: test.pool, job, owner: 'group', name: test.unique('prompt') };
    return payloads.put(name, Buffer.from('{"promptTokenIds":[1]}'));
  }

  private async save(): Promise<void> {
    this.generate();
    await this.saver.saveAll();
  }

  private generate(): void {
    for (const { tokens, earlier } of this.held.values()) {
      const count = this.decide(4);
      const tokenIds = Array.from({ length: count }, (_, index) => earlier + tokens.count + index);
      tokens.take({ text: 'x'.repeat(count), tokenIds, logprobs: tokenIds.map((id) => -id), tokenCount: count });
    }
  }

  private async repeatOld(): Promise<void> {
    const old = this.sent[this.decide(this.sent.length)];
    if (old !== undefined) await test.requests.saveMany(test.pool, old);
  }

  private async losePayloads(): Promise<void> {
    if (this.stored === undefined) return;
    this.isPayloadLost = true;
    await this.stored.restore();
  }

  private requireLost(error: unknown): undefined {
    if (!this.isPayloadLost || !isBroomwagonError(error, 'PAYLOAD_NOT_FOUND')) throw error as Error;
  }

  private readonly controlPlane = {
    call: async (operation: OperationName, { saves, ...worker }: SaveManyArgs) => {
      expect(operation).toBe('request.save-many');
      const toArgs = (save: (typeof saves)[number]) => ({
        ...save,
        segment: save.segment && JSON.stringify(save.segment),
        tokens: (save.segment as { tokenCount: number } | undefined)?.tokenCount ?? 0,
      });
      const args = { ...worker, saves: saves.map(toArgs) };
      this.sent.push(args);
      const fate = this.decide(4);
      if (fate === 0) throw new BroomwagonError('TIMEOUT', 'The message was lost');
      const answer = await test.requests.saveMany(test.pool, args);
      if (fate === 1) throw new BroomwagonError('TIMEOUT', 'The answer was lost');
      return answer;
    },
  } as unknown as ControlPlane;
}

it('resumes with each token that was saved, once, whatever was lost or repeated', async () => {
  await fc.assert(
    fc.asyncProperty(decisions, async (decide) => {
      await test.fresh();
      const world = new World(decide);
      await world.start();
      for (let step = 0; step < STEPS; step++) {
        await world.actions[decide(world.actions.length)]!();
        await world.checkFreed();
      }
      await world.finish();
    }),
    { numRuns: RUNS },
  );
});

it('stores hardly more than the response for all its saves', async () => {
  const [stored, config] = [new MemoryPayloadStore(), new WorkerConfig()];
  const tokens = new TokenBuffer([], false);
  const savedTokens = () => tokens.count;
  const controlPlane = {
    call: async (_: OperationName, { saves }: SaveManyArgs) => ({
      results: saves.map(() => ({ action: 'continue', savedTokens: savedTokens() })),
    }),
  } as unknown as ControlPlane;
  const segments = new SegmentSaver(stored, config);
  const saver = new PartialSaver(controlPlane, segments, config);
  const claim = { requestId: 'j/g/0', attempt: '1-a', job: 'j' } as Claim;
  const attempt = new Attempt(claim, { workerId: 'w', workerEpoch: 'e' });
  const saves = saver.start(attempt, LEASE as never, tokens);
  // 30 tokens a second, saved every 15 s.
  for (let count = 0; count < 8_000; count += 30) {
    const tokenIds = Array.from({ length: Math.min(30, 8_000 - count) }, (_, index) => 1_000 + 7 * (count + index));
    const logprobs = tokenIds.map((id) => -Math.fround(1 / id));
    tokens.take({ text: 'word '.repeat(tokenIds.length), tokenIds, logprobs, tokenCount: tokenIds.length });
    if (count % 450 === 420) await saver.saveAll();
  }
  await saves.stop();
  const sumBytes = () => [...stored.payloads.values()].reduce((sum, { length }) => sum + length, 0);
  const saved = sumBytes();
  await segments.save(attempt, LEASE, toSegment(tokens));
  expect(stored.payloads.size).toBe(Math.floor(8_000 / 450) + 1);
  const share = saved / (sumBytes() - saved);
  expect(share).toBeGreaterThan(0.9);
  expect(share).toBeLessThan(1.2);
});
