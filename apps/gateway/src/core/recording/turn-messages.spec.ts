import { expect, it } from 'vitest';
import { describeMessages, readTurnChat, toTurnChat } from './turn-messages';

const user = (content: string) => ({ role: 'user', content });
const answer = (content: string) => ({ role: 'assistant', content });

it('stores only messages that the previous turn does not have, and reads all of them', () => {
  const first = [user('a')];
  const second = [user('a'), answer('b'), user('c')];
  const chat = toTurnChat(second, answer('d'), describeMessages(first));
  expect(chat).toEqual({ shared: 1, messages: second.slice(1), response: answer('d') });
  const before = readTurnChat(toTurnChat(first, answer('b'), undefined));
  expect(readTurnChat(chat, before)).toEqual([...second, answer('d')]);
});

it.each([
  ['other messages', [user('other'), answer('b'), user('c')]],
  ['fewer messages', []],
])('stores all messages of a request with %s than the turn before', (_, messages) => {
  const parent = describeMessages([user('a'), answer('b')]);
  expect(toTurnChat(messages, answer('d'), parent)).toEqual({ shared: 0, messages, response: answer('d') });
});
