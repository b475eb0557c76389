import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { dataSet, findFaults } from './system/data-set';
import { TestSystem } from './system/test-system';

const PROMPTS = dataSet(16, 4);
const WORKER_TTL_MS = 1_500;
/** Time for which a busy machine may stand still. */
const SLACK_MS = 10_000;

describe('a worker that vanishes in the middle of a step', () => {
  let system: TestSystem;
  beforeAll(async () => {
    system = await TestSystem.start({ prompts: PROMPTS, speed: 30 });
  });
  afterEach(() => system.expectAtRest());
  afterAll(() => system?.stop());

  const train = (job: string) => system.train(job, PROMPTS, { groupsPerStep: 8, policy: 'resume' });
  const underLoad = () => expect.poll(() => system.runningRequests().then((ids) => ids.length)).toBeGreaterThan(8);

  it('killed: its requests run elsewhere, and its leases are returned within its time to live', async () => {
    const training = train('killed');
    await underLoad();
    const worker = system.process('worker-1');
    worker.kill('SIGKILL');
    const liveWorkers = async () => (await system.call('lb.status', {})).workers;
    await expect.poll(liveWorkers, { timeout: 2 * WORKER_TTL_MS + SLACK_MS }).toBe(1);
    const { lines, steps } = await training;
    expect(findFaults('killed', PROMPTS, lines)).toEqual([]);
    expect(steps).toHaveLength(2);
    await worker.start();
  });

  it('stopped beyond its time to live and continued: fenced, its streams aborted, registered anew', async () => {
    const training = train('stopped');
    await underLoad();
    const worker = system.process('worker-1');
    const epoch = async () => (await system.redis.hash('worker:worker-1'))['liveEpoch'];
    const before = await epoch();
    expect(before).toBeDefined();
    worker.pause();
    await expect.poll(epoch, { timeout: 2 * WORKER_TTL_MS + SLACK_MS }).toBeUndefined();
    worker.resume();
    await expect.poll(async () => ![undefined, before].includes(await epoch())).toBe(true);
    const { lines, steps } = await training;
    expect(findFaults('stopped', PROMPTS, lines)).toEqual([]);
    expect(steps).toHaveLength(2);
    expect(await worker.logTail(200)).toMatch(/expired/);
  });
});
