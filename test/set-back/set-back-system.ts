import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isBroomwagonError } from '@broomwagon/contracts';
import { connectRedis, openPayloadStore, PoolAudit, FunctionRunner } from '@broomwagon/state';
import { flushPrefix, type RedisHistory, testRedisUrl, waitUntil } from '@broomwagon/testing';
import { expect } from 'vitest';
import type { TestPrompt } from '../system/data-set';
import { type SystemOptions, TestSystem } from '../system/test-system';
import type { PayloadPlace } from './conditions';

/** A response of 300 tokens takes a third of a second: a data set runs for some seconds, and loses some of them. */
const SPEED = 15;
const LAST_SPEED = 100;
const PROGRESS_DEADLINE_MS = 60_000;
/** Longer than a trainer may take. */
const END_DEADLINE_MS = 180_000;
const REST_DEADLINE_MS = 20_000;
/** Time until a worker of a provocation expires. Redis may have it again, with its lease, though no process runs it. */
const FORGOTTEN_WORKER_MS = 60_000;
/** Settings that remove payloads later than any loss, but soon enough that a test sees removals. */
const LATE_REMOVAL = { PAYLOAD_DELETE_AFTER_MS: '8000', REDIS_LOSS_WINDOW_MS: '8000' };

/** A whole system on a Redis that can be set back, with payloads where the condition has them. */
export class SetBackSystem {
  private readonly payloads: { driver: 'redis' | 'file'; url: string; dir: string };
  private takeovers = 0;

  private constructor(
    readonly system: TestSystem,
    readonly redis: RedisHistory,
    readonly place: PayloadPlace,
    payloadFolder: string,
  ) {
    this.payloads = buildStoreOptions(place, redis.url, payloadFolder);
  }

  /** @param redis is stopped with the system, or when this fails */
  static async start(
    redis: RedisHistory,
    place: PayloadPlace,
    prompts: readonly TestPrompt[],
    { environment, ...options }: SystemOptions = {},
  ): Promise<SetBackSystem> {
    const folder = mkdtempSync(join(tmpdir(), 'broomwagon-payloads-'));
    try {
      const { driver, url, dir } = buildStoreOptions(place, redis.url, folder);
      const system = await TestSystem.start({
        prompts,
        speed: SPEED,
        redisUrl: redis.url,
        ...options,
        environment: { ...environment, ...LATE_REMOVAL, PAYLOAD_DRIVER: driver, PAYLOAD_URL: url, PAYLOAD_DIR: dir },
      });
      return new SetBackSystem(system, redis, place, folder);
    } catch (error) {
      await redis.stop();
      throw error;
    }
  }

  /** The folder of the payloads of the place `file`. */
  get payloadFolder(): string {
    return this.payloads.dir;
  }

  async stop(): Promise<void> {
    await this.system.stop();
    await this.redis.stop();
    if (this.place === 'own') await flushPrefix(this.payloads.url, `${this.system.keyPrefix}:`);
    rmSync(this.payloads.dir, { recursive: true, force: true });
  }

  /** Waits until this number of samples of the job is done. */
  untilDone(job: string, count: number): Promise<void> {
    return waitUntil(async () => (await this.done(job)) >= count, {
      what: `${count} samples of ${job}`,
      timeoutMs: PROGRESS_DEADLINE_MS,
    });
  }

  /** Speeds the engines up when so many more samples of the job are done, unless the training ends before. */
  async endSoon(job: string, samples: number, training: Promise<unknown>): Promise<void> {
    let isOver = false;
    const end = () => (isOver = true);
    training.then(end, end);
    const wanted = (await this.done(job)) + samples;
    await waitUntil(async () => isOver || (await this.done(job)) >= wanted, {
      what: `${wanted} samples of ${job}`,
      timeoutMs: END_DEADLINE_MS,
      intervalMs: 100,
    });
    await this.system.setSpeed(LAST_SPEED);
  }

  private async done(job: string): Promise<number> {
    try {
      const { requests } = await this.system.call('job.status', { job });
      return requests.finished + requests.trained;
    } catch (error) {
      if (isBroomwagonError(error, 'JOB_NOT_FOUND')) return 0;
      throw error;
    }
  }

  /** All that is known about a job, for a failed test. */
  async describe(job: string): Promise<string> {
    const { system } = this;
    const looks = [
      system.call('job.status', { job }),
      system.call('round.status', { job }),
      system.call('worker.list', {}),
      system.call('server.list', {}),
      system.call('lb.status', {}),
      ...['worker-1', 'worker-2'].map((workerId) => system.call('request.list', { workerId })),
    ];
    const found = await Promise.all(looks.map((look) => (look as Promise<unknown>).catch(String)));
    return `${found.map((one) => JSON.stringify(one)).join('\n')}\n${await system.logs()}`;
  }

  /**
   * Checks that Redis counts every sample of the job as trained, once, and has no other request that is not dropped.
   * @param mayFail whether groups may fail because the payload store lost their prompts; they are submitted again
   */
  async expectTrained(job: string, samples: number, mayFail: boolean): Promise<void> {
    const rest = { pending: 0, claimed: 0, running: 0, cutting: 0, unfinished: 0, finished: 0 };
    await expect
      .poll(
        async () => {
          const { requests, openRoundId, longtail, failedGroups } = await this.system.call('job.status', { job });
          const { submitted, dropped, failed, ...states } = requests;
          const failures = mayFail ? {} : { failed, failedGroups };
          return { ...states, openRoundId, longtail, ...failures, uncounted: submitted - dropped - failed - samples };
        },
        { timeout: REST_DEADLINE_MS },
      )
      .toEqual({
        ...rest,
        trained: samples,
        ...(mayFail ? {} : { failed: 0, failedGroups: 0 }),
        openRoundId: undefined,
        longtail: { groups: 0, settlingGroups: 0 },
        uncounted: 0,
      });
  }

  /** Gives up rounds and groups of provocations: Redis may have them again although their callers are done. */
  private async giveUpJobs(): Promise<void> {
    const { jobs } = await this.system.call('job.list', {});
    for (const job of jobs) {
      const takeoverId = `give-up-${++this.takeovers}`;
      const { round, trainerEpoch } = await this.system.call('round.takeover', { job, takeoverId });
      if (round) await this.system.call('round.cancel', { job, roundId: round.roundId, trainerEpoch, mode: 'drop' });
      await this.system.call('longtail.drop', { job, trainerEpoch, all: true, reason: 'given up' });
    }
  }

  /**
   * Checks that no lease is held, before and after the leftovers of jobs are given up, and that the audit then finds
   * nothing, in payloads too.
   */
  async expectAtRest(): Promise<void> {
    await this.system.expectNothingHeld(FORGOTTEN_WORKER_MS);
    await this.giveUpJobs();
    await this.system.expectAtRest();
    const redis = connectRedis({ url: this.redis.url });
    const { keyPrefix, pool } = this.system;
    const payloads = await openPayloadStore({ ...this.payloads, keyPrefix });
    try {
      const audit = new PoolAudit(redis, new FunctionRunner(redis, keyPrefix), payloads);
      const findings = async () => (await audit.run(pool)).findings;
      expect((await findings()).filter(({ check }) => check !== 'payload-missing')).toEqual([]);
      // Groups that are still being dropped may name payloads that are lost.
      await expect.poll(findings, { timeout: REST_DEADLINE_MS }).toEqual([]);
    } finally {
      await payloads.close();
      redis.disconnect();
    }
  }
}

function buildStoreOptions(place: PayloadPlace, redisUrl: string, dir: string) {
  const driver = place === 'file' ? ('file' as const) : ('redis' as const);
  return { driver, url: place === 'own' ? testRedisUrl() : redisUrl, dir };
}
