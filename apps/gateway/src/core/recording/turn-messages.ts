import { createHash } from 'node:crypto';
import type { TurnChat } from '@broomwagon/state';

/** Identifies the messages of a request: `count|digest`. */
export function describeMessages(messages: readonly unknown[]): string {
  const digest = createHash('sha256').update(JSON.stringify(messages)).digest('hex');
  return `${messages.length}|${digest}`;
}

/**
 * Stored form of the messages of a turn. A request repeats the messages of the turn that it extends: only their number
 * is stored.
 * @param parent description of the messages of the extended turn; absent: the turn extends none, or has no messages
 */
export function toTurnChat(
  messages: readonly unknown[],
  response: Record<string, unknown>,
  parent: string | undefined,
): TurnChat {
  const count = Number(parent?.split('|', 1)[0] ?? 0);
  const isShared = count <= messages.length && describeMessages(messages.slice(0, count)) === parent;
  const shared = isShared ? count : 0;
  return { shared, messages: messages.slice(shared), response };
}

/** All messages of a turn, its response last. @param before all messages of the turn that this turn extends */
export function readTurnChat({ shared, messages, response }: TurnChat, before: readonly unknown[] = []): unknown[] {
  return [...before.slice(0, shared), ...messages, response];
}
