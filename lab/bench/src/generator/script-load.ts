import { type AcquireEntry, FunctionRunner, LeaseStore } from '@broomwagon/state';
import { Redis } from 'ioredis';
import { AcquireBodies } from './acquire-bodies';
import type { Job, JobResult } from './jobs';
import { Measurement } from './measurement';

/** Acquires by FCALL, as the store calls it: one acquire per call, `window` calls in flight. */
export async function scriptLoad(job: Extract<Job, { kind: 'script' }>): Promise<JobResult> {
  const redis = new Redis(job.redisUrl, { enableAutoPipelining: false });
  const leases = new LeaseStore(new FunctionRunner(redis, job.keyPrefix));
  const bodies = new AcquireBodies(job.workers, job.sessions);
  const measurement = new Measurement(job);
  const held: string[] = [];
  const loops = Array.from({ length: job.window }, async () => {
    while (!measurement.isOver) {
      const acquireId = bodies.nextId();
      const item = JSON.parse(bodies.acquire(acquireId)) as AcquireEntry;
      const beganAtMs = performance.now();
      const { results } = await leases.acquire(job.pool, [item]);
      if (!('seq' in results[0]!)) throw new Error(`Not granted: ${JSON.stringify(results[0])}`);
      measurement.ended(beganAtMs);
      held.push(acquireId);
    }
  });
  await Promise.all(loops);
  await redis.quit();
  return measurement.result(held);
}
