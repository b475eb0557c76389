import 'reflect-metadata';
import { provideServices } from './services';

/**
 * One NATS and one Redis for all test files of a run: those that TEST_NATS_URL / TEST_REDIS_URL (or NATS_URL /
 * REDIS_URL) name, else servers of our own. The forks inherit the two TEST_ variables.
 */
export default async function setup(): Promise<() => Promise<void>> {
  const say = (line: string) => process.stderr.write(`${line}\n`);
  const services = await provideServices({ forTests: true, say });
  say(`${services.nats.description}\n${services.redis.description}`);
  process.env['TEST_NATS_URL'] = services.nats.url;
  process.env['TEST_REDIS_URL'] = services.redis.url;
  return () => services.stop();
}
