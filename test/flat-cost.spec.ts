import type { Epoch, GroupSubmission, TailPolicy } from '@broomwagon/contracts';
import { startRedis, type ServerHandle } from '@broomwagon/testing';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestSystem } from './system/test-system';
import { TestWorker } from './system/test-worker';

const RESUME: TailPolicy = { name: 'resume', overProvision: 2 };
const group = (groupId: string): GroupSubmission => ({
  groupId,
  samples: 1,
  maxTokens: 100,
  prompt: { text: groupId },
});

describe('the cost of rounds', () => {
  let system: TestSystem;
  let controlServer: ServerHandle;
  let payloadServer: ServerHandle;
  beforeAll(async () => {
    [controlServer, payloadServer] = await Promise.all([startRedis(), startRedis()]);
    const environment = {
      PAYLOAD_URL: payloadServer.url,
      PAYLOAD_DELETE_AFTER_MS: '1000',
      REDIS_LOSS_WINDOW_MS: '1000',
      CUT_REPEAT_MS: '60000',
      CLAIM_ANSWER_KEPT_MS: '1',
    };
    system = await TestSystem.start({ workers: 0, engines: 1, redisUrl: controlServer.url, environment });
  });
  afterAll(async () => {
    await system?.stop();
    await Promise.all([controlServer?.stop(), payloadServer?.stop()]);
  });

  it('does not grow with the steps: keys and memory are the same after 200 rounds as after 150', async () => {
    const worker = await TestWorker.register(system, 'tiny');
    let trainerEpoch: Epoch | undefined;
    const prompts = Array.from({ length: 400 }, (_, index) => group(`tiny-${index}`));
    const payloads = new Redis(payloadServer.url);
    const sizes = async () => {
      // The counts of the last round are folded in the background.
      await expect.poll(async () => (await system.call('job.status', { job: 'tiny' })).requests.finished).toBe(0);
      await expect.poll(() => system.redis.exists('sweeps')).toBe(false);
      await expect.poll(() => payloads.keys('*:item:*')).toEqual([]);
      const control = await system.redis.keySizes();
      const bytes = [...control.values()].reduce((sum, size) => sum + size, 0);
      return { keys: control.size, bytes, payloadKeys: await payloads.dbsize() };
    };
    let after150 = { keys: 0, bytes: 0, payloadKeys: 0 };
    for (let round = 1; round <= 200; round += 1) {
      const groups = prompts.slice((round - 1) * 2);
      const policy: TailPolicy = { name: 'wait', overProvision: 1 };
      const opened = await system.openRound('tiny', { groupsPerStep: 2, groups, policy, trainerEpoch });
      ({ trainerEpoch } = opened);
      for (const claim of await worker.claim(2)) {
        await worker.useServer(claim);
        await worker.complete(claim, await worker.store(claim, Buffer.from('{"tokenIds":[1,2,3]}')));
      }
      const tiny = { job: 'tiny', roundId: opened.roundId, trainerEpoch };
      const { cursor } = await system.call('round.results', tiny);
      await system.call('round.close', { ...tiny, cursor });
      // Numbers above 127 take a byte more in a packed hash, and ids of three digits one more than ids of two.
      if (round === 150) after150 = await sizes();
    }
    const { keys, bytes, payloadKeys } = after150;
    // Calls that run while the sizes are read have keys for a moment.
    await expect
      .poll(async () => {
        const now = await sizes();
        return [now.keys - keys <= 2, now.bytes <= bytes * 1.01 + 512, now.payloadKeys - payloadKeys <= 2, now];
      })
      .toEqual([true, true, true, expect.anything()]);
    payloads.disconnect();
  });

  it('is the same for the control plane with payloads of 1 kB and of 10 MB: complete, cut and requeue', async () => {
    // The first run also sends the scripts to Redis.
    await measureCost('first', 10);
    // Calls that the services make by themselves add to the cost, in proportion to the duration, so the least of
    // several tries is the nearest.
    const least = { small: Infinity, large: Infinity };
    let tries = 0;
    const difference = async (): Promise<number> => {
      tries += 1;
      const small = await measureCost(`small-${tries}`, 1_000);
      const large = await measureCost(`large-${tries}`, 10_000_000);
      expect(large.payloadBytes).toBeGreaterThan(2 * 10_000_000);
      least.small = Math.min(least.small, small.controlBytes);
      least.large = Math.min(least.large, large.controlBytes);
      return Math.abs(least.large - least.small);
    };
    // Names and counters differ by some bytes.
    await expect.poll(difference, { timeout: 60_000 }).toBeLessThan(4_000);
  });

  /** Bytes that reach each Redis while one request of a round completes and another is cut and requeued. */
  async function measureCost(job: string, payloadBytes: number) {
    const worker = await TestWorker.register(system, `worker-${job}`);
    const groups = [group(`${job}-1`), group(`${job}-2`)];
    const { roundId } = await system.openRound(job, { groupsPerStep: 1, groups, policy: RESUME });
    const [first, second] = await worker.claim(2);
    await worker.begin(first!);
    await worker.begin(second!);
    const payloadBefore = await received(payloadServer.url);
    const bytes = Buffer.alloc(payloadBytes, 'x');
    const segments = [await worker.store(first!, bytes), await worker.store(second!, bytes)];
    const payloadSent = (await received(payloadServer.url)) - payloadBefore;

    const before = await received(controlServer.url);
    expect(await worker.complete(first!, segments[0]!)).toMatchObject({ roundCompleted: true });
    expect(await worker.confirm(second!, segments[1]!)).toEqual({ state: 'unfinished' });
    const controlBytes = (await received(controlServer.url)) - before;
    await expect.poll(async () => (await system.call('round.status', { job, roundId })).groupsRequeued).toBe(1);
    return { payloadBytes: payloadSent, controlBytes };
  }
});

/** Bytes a Redis server has been sent since its start. */
async function received(url: string): Promise<number> {
  const redis = new Redis(url);
  const info = await redis.info('stats');
  redis.disconnect();
  return Number(/total_net_input_bytes:(\d+)/.exec(info)![1]);
}
