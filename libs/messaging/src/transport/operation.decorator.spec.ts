import { Controller } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { ReleaseRequest, buildSubject, type ReleaseReply, type RemoveServerRequest } from '@broomwagon/contracts';
import { testNatsUrl, testPool } from '@broomwagon/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { MessagingClient } from '../client/messaging.client';
import { TypedClient } from '../client/typed.client';
import { connectNats } from '../connection';
import { MessageContext } from './message-context';
import { NatsTransport } from './nats.transport';
import { Operation } from './operation.decorator';
import { attachTransport } from './rethrow.filter';

const { pool } = testPool();
const handled: [string, unknown][] = [];

@Controller()
class LbController {
  @Operation('lb.release')
  async release(body: ReleaseRequest, context: MessageContext): Promise<ReleaseReply> {
    handled.push([context.pool, body]);
    return { released: true, reason: 'released' };
  }
}

@Controller()
export class WrongController {
  // @ts-expect-error the body of another operation
  @Operation('lb.release')
  async otherBody(_body: RemoveServerRequest): Promise<ReleaseReply> {
    return { released: true, reason: 'released' };
  }

  // @ts-expect-error a reply that lacks its reason
  @Operation('lb.release')
  async otherReply(_body: ReleaseRequest) {
    return { released: true };
  }
}

let client: TypedClient;
let close: () => Promise<unknown>;

beforeAll(async () => {
  const app = (await Test.createTestingModule({ controllers: [LbController] }).compile()).createNestApplication({
    logger: false,
  });
  const transport = new NatsTransport(await connectNats({ url: testNatsUrl() }), { queueGroup: pool, pools: [pool] });
  attachTransport(app, transport);
  await app.init();
  await app.startAllMicroservices();
  client = new TypedClient(new MessagingClient(await connectNats({ url: testNatsUrl() })));
  close = () => Promise.all([app.close(), client.messaging.connection.close()]);
});
afterAll(() => close());

it('gives the handler the validated body and the pool', async () => {
  await client.call(pool, 'lb.release', { leaseId: '1.a', outcome: 'finished' });
  expect(handled).toEqual([[pool, Object.assign(new ReleaseRequest(), { leaseId: '1.a', outcome: 'finished' })]]);
});

it('refuses fields that are not in the contract of the operation', async () => {
  const answer = client.messaging.request(buildSubject(pool, 'lb.release'), { leaseId: '1.a', outcome: 'lost' });
  await expect(answer).rejects.toMatchObject({ code: 'VALIDATION_FAILED', field: 'outcome' });
  expect(handled).toHaveLength(1);
});
