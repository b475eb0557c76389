import { expect, it } from 'vitest';
import { useGateway } from '../../../../../test/system/gateway-bench';

const gateway = { recordSessions: 'path', recordMessages: true } as const;
const system = useGateway(2, { dialect: 'vllm', speed: 20, gateway });
const user = (content: string) => ({ role: 'user', content });

it('records sessions that only a path names, with the messages of their chats', async () => {
  const path = '/sessions/s/v1/chat/completions';
  const first = await system.gateway.post(path, { messages: [user('a')], max_tokens: 3 });
  const { message } = first.body.choices[0];
  const messages = [user('a'), message, user('b')];
  await system.gateway.post(path, { messages, max_tokens: 3 });
  const { body } = await system.gateway.get('/sessions/s/traces');
  expect(body[0]).toMatchObject({ messages: [user('a')], response_message: message });
  expect(body[1]).toMatchObject({ messages, response_message: { role: 'assistant' } });
  const { branches } = (await system.gateway.get('/sessions/s/trajectory')).body;
  expect(branches[0].messages.slice(0, 2)).toEqual([user('a'), message]);
});

it('records no session that only a header or a key names', async () => {
  const body = { messages: [user('a')], max_tokens: 1 };
  await system.gateway.post('/v1/chat/completions', body, { 'x-session-id': 'header' });
  await system.gateway.post('/v1/chat/completions', body, { authorization: 'Bearer token.key' });
  expect((await system.gateway.get('/sessions')).body).toEqual([]);
  const { status, body: traces } = await system.gateway.get('/sessions/header/traces');
  expect([status, traces]).toEqual([200, []]);
});
