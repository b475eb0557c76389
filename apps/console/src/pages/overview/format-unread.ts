import type { Schemas } from '@broomwagon/admin-client';

export type Overview = Schemas['OverviewReply'];

/** Says which part of the overview has not answered, and why. */
export function formatUnread({ unread }: Overview, part: Schemas['UnreadPart']['part']): string {
  const found = unread.find((one) => one.part === part);
  return found === undefined ? 'Not known.' : `Not known: ${found.reason}`;
}
