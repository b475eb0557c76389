import { startNats, startRedis, type ServerHandle, testNatsUrl, testRedisUrl } from '@broomwagon/testing';
import { afterEach, describe, expect, it } from 'vitest';
import { dataSet, findFaults } from './system/data-set';
import { TestSystem } from './system/test-system';

const PROMPTS = dataSet(24, 4);

describe('servers in the middle of a step', () => {
  let system: TestSystem | undefined;
  let server: ServerHandle | undefined;
  afterEach(async () => {
    await system?.stop();
    await server?.stop();
  });

  it.each(['Redis', 'NATS'] as const)(
    '%s dies and comes back: the step completes, the counts balance',
    async (kind) => {
      server = kind === 'Redis' ? await startRedis({ configuration: 'appendfsync always' }) : await startNats();
      system = await TestSystem.start({
        prompts: PROMPTS,
        speed: 30,
        natsUrl: kind === 'NATS' ? server.url : testNatsUrl(),
        redisUrl: kind === 'Redis' ? server.url : testRedisUrl(),
      });
      const training = system.train('job', PROMPTS, { groupsPerStep: 8, policy: 'resume' });
      await expect.poll(async () => (await system!.runningRequests()).length).toBeGreaterThan(8);
      await server.kill();
      await server.restart();
      const { lines, steps } = await training;
      expect(findFaults('job', PROMPTS, lines)).toEqual([]);
      expect(steps).toHaveLength(PROMPTS.length / 8);
      await system.expectAtRest();
    },
  );
});
