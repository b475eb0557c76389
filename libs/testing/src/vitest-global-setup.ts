import 'reflect-metadata';
import { resolve } from 'node:path';
import type { TestProject } from 'vitest/node';

const START_CACHE = resolve('dist/libs/testing/src/processes/start-cache.js');

declare module 'vitest' {
  interface ProvidedContext {
    /** Seed of all random values of tests. Fixed, unless `TEST_SEED` is set. */
    seed: number;
    /** Factor by which properties have more runs than in `npm test`. `TEST_RUNS_FACTOR`. */
    runsFactor: number;
    /** Whether Redis speaks TLS. The Valkey of the Python package index does not. */
    redisHasTls: boolean;
  }
}

/**
 * Provides one NATS and one Redis for all test files of a run, except for the tier `unit`: the servers that
 * TEST_NATS_URL and TEST_REDIS_URL (or NATS_URL and REDIS_URL) name, else new servers. The forks inherit the two TEST_
 * variables. With TEST_FOREIGN_STREAM a JetStream stream acknowledges all requests, which must change nothing. The
 * programs that tests start load their modules through `processes/start-cache.ts`.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  project.provide('seed', Number(process.env['TEST_SEED'] ?? 0));
  project.provide('runsFactor', Number(process.env['TEST_RUNS_FACTOR'] ?? 1));
  project.provide('redisHasTls', false);
  if (process.env['TEST_TIER'] === 'unit') return () => Promise.resolve();
  const [{ provideServices }, { makeForeignStream }, { redisHasTls }] = await Promise.all([
    import('./services'),
    import('./foreign-stream'),
    import('./servers/redis-tls'),
  ]);
  const say = (line: string) => process.stderr.write(`${line}\n`);
  const services = await provideServices({ forTests: true, say });
  say(`Node ${process.version}\n${services.nats.description}\n${services.redis.description}`);
  const hasTls = await redisHasTls();
  project.provide('redisHasTls', hasTls);
  if (!hasTls) say('Tests of TLS with Redis are skipped: this Redis was built without TLS');
  if (process.env['TEST_FOREIGN_STREAM'] !== undefined) await makeForeignStream(services.nats.url);
  process.env['TEST_NATS_URL'] = services.nats.url;
  process.env['TEST_REDIS_URL'] = services.redis.url;
  const options = process.env['NODE_OPTIONS'] ?? '';
  if (!options.includes(START_CACHE)) process.env['NODE_OPTIONS'] = `${options} --require="${START_CACHE}"`;
  return () => services.stop();
}
