import { BroomwagonError } from '@broomwagon/contracts';
import { testNatsUrl, testPool } from '@broomwagon/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { connectNats } from '../connection';
import { ReplySubjects } from '../transport/reply-subjects';
import type { JsonObject } from '../wire';
import { MessagingClient } from './messaging.client';
import { TypedClient } from './typed.client';

const { pool } = testPool();
let client: MessagingClient;
let typed: TypedClient;
beforeAll(async () => {
  client = new MessagingClient(await connectNats({ url: testNatsUrl() }), new ReplySubjects(), 50);
  typed = new TypedClient(client);
});
afterAll(() => client?.connection.close());

const SERVER = { serverId: 's', endpoint: 'http://127.0.0.1:1', dialect: 'vllm', maxInflight: 1 } as const;

it.each([
  ['rememberId', 'prompt.remember', { prompts: [{ promptId: 'p', lengths: [1] }] }, { remembered: 1 }],
  ['registrationId', 'server.register', SERVER, { serverId: 's', epoch: 'e1', state: 'ready' }],
] as const)('sends repeats of a call with the same %s, and other calls with others', async (...row) => {
  const [field, operation, body, reply] = row;
  const received: JsonObject[] = [];
  const listIds = (messages: JsonObject[]) => [...new Set(messages.map((message) => message[field]))];
  const subscription = client.subscribe(`rollout.v1.${pool}.${operation}`, (message, { replyTo }) => {
    // The first message of each call gets no reply. A busy machine sends more than one repeat.
    const isFirst = !listIds(received).includes(message[field]);
    received.push(message);
    if (!isFirst) client.reply(replyTo!, reply);
  });
  await client.flush();
  const calls = [
    () => typed.call(pool, operation, body as never, { timeoutMs: 30_000 }),
    () => typed.callWithRetry(pool, operation, body as never, { deadlineMs: 30_000, attemptTimeoutMs: 30_000 }),
    () => typed.call(pool, operation, { ...body, [field]: 'own' } as never, { timeoutMs: 30_000 }),
  ];
  for (const call of calls) await call();
  const ids = listIds(received);
  expect(ids).toEqual([expect.any(String), expect.any(String), 'own']);
  expect(received[0]).toMatchObject(body);
  subscription.unsubscribe();
});

it('sends a call without an id to a service of a release that does not know the field', async () => {
  const received: boolean[] = [];
  const subscription = client.subscribe(`rollout.v1.${pool}.prompt.remember`, (message, { replyTo }) => {
    received.push('rememberId' in message);
    const error = new BroomwagonError('VALIDATION_FAILED', 'no such field', { field: 'rememberId' });
    client.reply(replyTo!, 'rememberId' in message ? error : { remembered: 1 });
  });
  await client.flush();
  const prompts = [{ promptId: 'p', lengths: [1] }];
  expect(await typed.call(pool, 'prompt.remember', { prompts })).toEqual({ remembered: 1 });
  await expect(typed.call(pool, 'prompt.remember', { prompts, rememberId: 'own' })).rejects.toThrow('no such field');
  // A busy machine repeats a message; the call that named an id itself is not sent without the id.
  expect(received.filter((hasId, index) => hasId !== received[index - 1])).toEqual([true, false, true]);
  subscription.unsubscribe();
});
