import { buildSubject } from '@broomwagon/contracts';
import { type AcquireEntry, FunctionRunner, toLeaseGrant, LeaseStore, parseLeaseId } from '@broomwagon/state';
import { Redis } from 'ioredis';
import { connect, type Msg } from 'nats';
import { answerParent } from '../child';

interface Setup {
  natsUrl: string;
  redisUrl: string;
  keyPrefix: string;
  pool: string;
}

/**
 * A handler written by hand: nats.js and the store on ioredis with nothing between. It calls the same scripts with the
 * same arguments as the load-balancer, once for each request. No validation, no metrics, no deadlines, no shutdown.
 */
answerParent<Setup, void>(async ({ natsUrl, redisUrl, keyPrefix, pool }) => {
  const nats = await connect({ servers: natsUrl });
  const redis = new Redis(redisUrl, { enableAutoPipelining: false });
  const leases = new LeaseStore(new FunctionRunner(redis, keyPrefix));

  async function acquire(message: Msg): Promise<void> {
    const body = JSON.parse(Buffer.from(message.data).toString()) as AcquireEntry;
    const { results, servers } = await leases.acquire(pool, [body]);
    const result = results[0]!;
    if (!('seq' in result)) throw new Error(`Not granted: ${JSON.stringify(result)}`);
    message.respond(JSON.stringify(toLeaseGrant(body.acquireId, result, servers)));
  }
  async function release(message: Msg): Promise<void> {
    const { leaseId } = JSON.parse(Buffer.from(message.data).toString()) as { leaseId: string };
    const { results } = await leases.release(pool, [parseLeaseId(leaseId)!]);
    message.respond(JSON.stringify(results[0]));
  }
  nats.subscribe(buildSubject(pool, 'lb.acquire'), { queue: 'raw', callback: (_, message) => void acquire(message) });
  nats.subscribe(buildSubject(pool, 'lb.release'), { queue: 'raw', callback: (_, message) => void release(message) });
  await nats.flush();
});
