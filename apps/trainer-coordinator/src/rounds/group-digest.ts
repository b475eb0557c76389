import { createHash } from 'node:crypto';
import type { GroupSubmission } from '@broomwagon/contracts';

/**
 * Digest of the contents of a group, whatever the order of its fields. A group id with the same digest is a repeat,
 * with another digest a duplicate.
 */
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
