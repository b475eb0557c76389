import { LIMITS } from '@broomwagon/contracts';
import { expect, it } from 'vitest';
import { BurstReply } from './burst-reply';

const server = { epoch: 'e1', endpoint: 'http://h', dialect: 'vllm' as const, weightVersion: 0 };

it('returns a server of any id under a field of its own', () => {
  const reply = new BurstReply(['a']);
  reply.add({ acquireId: 'a', leaseId: '1.a', serverId: '__proto__' }, server);
  expect(JSON.stringify(reply.body)).toContain('"servers":{"__proto__":{"epoch":"e1"');
  expect(reply.body.servers['__proto__']).toEqual(server);
});

it('reports for each item without room whether it was granted', () => {
  const reply = new BurstReply(['fits', 'granted', 'refused']);
  const wide = { ...server, endpoint: 'x'.repeat(LIMITS.bodyBytes) };
  reply.add({ acquireId: 'fits', leaseId: '1.fits', serverId: 's' }, server);
  reply.add({ acquireId: 'granted', leaseId: '2.granted', serverId: 't' }, wide);
  const error = { code: 'SERVERS_FULL' as const, message: 'x'.repeat(LIMITS.bodyBytes), retryable: true };
  reply.add({ acquireId: 'refused', error });
  expect(reply.body.leases).toMatchObject([
    { leaseId: '1.fits' },
    { acquireId: 'granted', error: { code: 'REPLY_FULL', details: { granted: true } } },
    { acquireId: 'refused', error: { code: 'REPLY_FULL', details: { granted: false } } },
  ]);
});
