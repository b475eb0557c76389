import { Redis } from 'ioredis';
import { recordCall, withScript } from '../raw/recorded-call';
import { AcquireBodies } from './acquire-bodies';
import type { Job, JobResult } from './jobs';
import { Measurement } from './measurement';

/** The acquire script by EVALSHA, one acquire a call, `window` calls in flight. */
export async function scriptLoad(job: Extract<Job, { kind: 'script' }>): Promise<JobResult> {
  const redis = new Redis(job.redisUrl, { enableAutoPipelining: false });
  const call = await recordCall((store) => store.acquire('any', []));
  const acquire = withScript(redis, call.lua, 'acquire');
  const bodies = new AcquireBodies(job.workers, job.sessions);
  const measurement = new Measurement(job);
  const rootKey = `${job.keyPrefix}:{${job.pool}}`;
  const [before, after] = JSON.stringify({ ...call.args, items: ['@'] }).split('"@"');
  const held: string[] = [];
  const loops = Array.from({ length: job.window }, async () => {
    while (!measurement.isOver) {
      const acquireId = bodies.nextId();
      const beganAtMs = performance.now();
      const reply = await acquire(rootKey, `${before}${bodies.acquire(acquireId)}${after}`);
      if (!reply.includes('"seq"')) throw new Error(`Not granted: ${reply}`);
      measurement.ended(beganAtMs);
      held.push(acquireId);
    }
  });
  await Promise.all(loops);
  await redis.quit();
  return measurement.result(held);
}
