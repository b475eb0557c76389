import { createHash } from 'node:crypto';
import type { GroupSubmission } from '@broomwagon/contracts';

/** What a group is, whatever the order of its fields: the same group again is a repeat, another one a duplicate. */
export function groupDigest(group: GroupSubmission): string {
  const { groupId: _, ...contents } = group;
  const text = JSON.stringify(canonical({ ...contents, sampling: contents.sampling ?? {} }));
  return createHash('sha256').update(text).digest('base64url');
}

function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, part]) => part !== undefined);
  return entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, part]) => [name, canonical(part)]);
}
