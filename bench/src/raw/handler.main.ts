import { subjectOf } from '@broomwagon/contracts';
import { leaseGrantOf, parseLeaseId, type AcquireScriptReply, type ReleaseScriptReply } from '@broomwagon/state';
import { Redis } from 'ioredis';
import { connect, type Msg } from 'nats';
import { answerParent } from '../child';
import { recordCall, withScript } from './recorded-call';

interface Setup {
  natsUrl: string;
  redisUrl: string;
  keyPrefix: string;
  pool: string;
}

/**
 * What one would write by hand: nats.js and ioredis with nothing between, the same scripts as the load-balancer, once
 * for each request. No validation, no metrics, no deadlines, no shutdown.
 */
answerParent<Setup, void>(async ({ natsUrl, redisUrl, keyPrefix, pool }) => {
  const nats = await connect({ servers: natsUrl });
  const redis = new Redis(redisUrl, { enableAutoPipelining: false });
  const rootKey = `${keyPrefix}:{${pool}}`;
  const acquireCall = await recordCall((store) => store.acquire('any', []));
  const releaseCall = await recordCall((store) => store.release('any', []));
  const runAcquire = withScript(redis, acquireCall.lua, 'acquire');
  const runRelease = withScript(redis, releaseCall.lua, 'release');

  async function acquire(message: Msg): Promise<void> {
    const body = JSON.parse(Buffer.from(message.data).toString()) as { acquireId: string };
    const items = [body];
    const raw = await runAcquire(rootKey, JSON.stringify({ ...acquireCall.args, items }));
    const { results, servers } = JSON.parse(raw) as AcquireScriptReply;
    const result = results[0]!;
    if (!('seq' in result)) throw new Error(`Not granted: ${raw}`);
    message.respond(JSON.stringify(leaseGrantOf(body.acquireId, result, servers)));
  }
  async function release(message: Msg): Promise<void> {
    const { leaseId } = JSON.parse(Buffer.from(message.data).toString()) as { leaseId: string };
    const items = [parseLeaseId(leaseId)];
    const raw = await runRelease(rootKey, JSON.stringify({ ...releaseCall.args, items }));
    message.respond(JSON.stringify((JSON.parse(raw) as ReleaseScriptReply).results[0]));
  }
  nats.subscribe(subjectOf(pool, 'lb.acquire'), { queue: 'raw', callback: (_, message) => void acquire(message) });
  nats.subscribe(subjectOf(pool, 'lb.release'), { queue: 'raw', callback: (_, message) => void release(message) });
  await nats.flush();
});
