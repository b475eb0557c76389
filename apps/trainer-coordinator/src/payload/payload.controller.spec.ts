import { randomBytes } from 'node:crypto';
import type { INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { attachTransport, connectNats, MessagingClient, NatsTransport, TypedClient } from '@broomwagon/messaging';
import { PayloadModule } from '@broomwagon/state';
import { flushPrefix, testNatsUrl, testPool, testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { PayloadController } from './payload.controller';

const { pool } = testPool();

describe('payload operations', () => {
  let app: INestApplication;
  let client: TypedClient;

  beforeAll(async () => {
    const store = { driver: 'redis' as const, url: testRedisUrl(), dir: '', keyPrefix: pool, quotaBytes: 1_000_000 };
    const testing = await Test.createTestingModule({
      imports: [
        PayloadModule.forRoot({
          ...store,
          readiness: { addReadiness: () => undefined, requestRestart: () => undefined },
        }),
      ],
      controllers: [PayloadController],
    }).compile();
    app = testing.createNestApplication({ logger: false });
    const connection = await connectNats({ url: testNatsUrl() });
    attachTransport(app, new NatsTransport(connection, { queueGroup: 'trainer-coordinator', pools: [pool] }));
    await app.init();
    await app.startAllMicroservices();
    client = new TypedClient(new MessagingClient(await connectNats({ url: testNatsUrl() })));
  });
  afterAll(async () => {
    await app.close();
    await client.messaging.connection.close();
    await flushPrefix(testRedisUrl(), `${pool}:`);
  });

  it('gives the first chunks of several payloads, as many as fit a reply, and says which are missing', async () => {
    const sizes = [10, 262_144, 262_144, 20, ...Array.from({ length: 16 }, () => 30)];
    const put = async (size: number, index: number) => {
      const of = { job: 'j2', requestId: `j2/g/${index}`, name: '1', chunkIndex: 0, chunkCount: 1 };
      return client.call(pool, 'payload.put', { ...of, data: Buffer.alloc(size, index).toString('base64') });
    };
    const refs = await Promise.all(sizes.map(async (size, index) => (await put(size, index)).ref!));
    const missing = refs[0]!.replace(/.$/, '2');
    const small = [missing, refs[0]!, ...refs.slice(3)];
    const { payloads } = await client.call(pool, 'payload.get-many', { refs: small });
    expect(payloads[0]).toMatchObject({ error: { code: 'PAYLOAD_NOT_FOUND', retryable: false } });
    expect(payloads.slice(1)).toEqual(
      await Promise.all(small.slice(1).map((ref) => client.call(pool, 'payload.get', { ref }))),
    );
    const full = await client.call(pool, 'payload.get-many', { refs });
    expect(full.payloads.slice(0, 2)).toMatchObject([{ bytes: 10 }, { bytes: 262_144 }]);
    expect(full.payloads.slice(2)).toMatchObject(
      refs.slice(2).map(() => ({ error: { code: 'REPLY_FULL', retryable: true } })),
    );
    const foreign = refs[0]!.replace(pool, 'other');
    await expect(client.call(pool, 'payload.get-many', { refs: [refs[0]!, foreign] })).rejects.toMatchObject({
      code: 'PAYLOAD_FOREIGN',
      field: 'refs.1',
    });
  });

  it('takes a payload in chunks and gives it back', async () => {
    const bytes = randomBytes(600_000);
    const size = 262_144;
    const of = { job: 'j1', requestId: 'j1/g1/0', name: '1', chunkCount: 3 };
    let ref: string | undefined;
    for (const chunkIndex of [2, 0, 1]) {
      const data = bytes.subarray(chunkIndex * size, (chunkIndex + 1) * size).toString('base64');
      const reply = await client.call(pool, 'payload.put', { ...of, chunkIndex, data });
      expect(reply.ref === undefined).toBe(chunkIndex !== 1);
      ref = reply.ref;
    }
    const stat = await client.call(pool, 'payload.stat', { ref: ref! });
    expect(stat).toMatchObject({ bytes: 600_000, chunkCount: 3 });
    const parts: Buffer[] = [];
    for (let chunkIndex = 0; chunkIndex < stat.chunkCount; chunkIndex++) {
      const chunk = await client.call(pool, 'payload.get', { ref: ref!, chunkIndex });
      expect(chunk).toMatchObject({ chunkIndex, chunkCount: 3, bytes: 600_000 });
      parts.push(Buffer.from(chunk.data, 'base64'));
    }
    expect(Buffer.concat(parts).equals(bytes)).toBe(true);
  });

  it('answers invalid calls with the code of the error', async () => {
    const chunk = { job: 'j1', groupId: 'g2', name: 'prompt', chunkIndex: 0, chunkCount: 2, data: 'eHl6' };
    const { receivedChunks } = await client.call(pool, 'payload.put', chunk);
    expect(receivedChunks).toBe(1);
    await expect(client.call(pool, 'payload.put', { ...chunk, chunkIndex: 2 })).rejects.toMatchObject({
      code: 'VALIDATION_FAILED',
    });
    await expect(client.call(pool, 'payload.put', { ...chunk, data: 'not base64' })).rejects.toMatchObject({
      code: 'VALIDATION_FAILED',
      field: 'data',
    });
    await expect(client.call(pool, 'payload.stat', { ref: `redis~${pool}~j1~g2~prompt` })).rejects.toMatchObject({
      code: 'PAYLOAD_INCOMPLETE',
    });
    await expect(client.call(pool, 'payload.get', { ref: `redis~${pool}~j1~g3~prompt` })).rejects.toMatchObject({
      code: 'PAYLOAD_NOT_FOUND',
    });
  });
});
