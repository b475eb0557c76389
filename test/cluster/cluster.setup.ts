import type { TestProject } from 'vitest/node';
import { RedisCluster } from '../../libs/testing/src/servers/redis-cluster';
import provideTheOthers from '../../libs/testing/src/vitest-global-setup';

/** One NATS, and in the place of the one Redis a Cluster, for all test files of a run. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const cluster = await RedisCluster.start({ primaries: 3, replicas: 0 });
  process.env['TEST_REDIS_URL'] = cluster.url;
  const stopTheOthers = await provideTheOthers(project);
  return async () => {
    await stopTheOthers();
    await cluster.stop();
  };
}
