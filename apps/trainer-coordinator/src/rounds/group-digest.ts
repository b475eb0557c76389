import { createHash } from 'node:crypto';
import type { GroupSubmission } from '@broomwagon/contracts';

/** What a group is, whatever the order of its fields: the same group again is a repeat, another one a duplicate. */
export function groupDigest({
  samples,
  prompt,
  promptRef,
  maxTokens,
  sampling,
  domain,
  promptId,
  minSamples,
  timeoutMs,
}: GroupSubmission): string {
  const contents = canonical({
    samples,
    prompt,
    promptRef,
    maxTokens,
    sampling: sampling ?? {},
    domain,
    promptId,
    minSamples,
    timeoutMs,
  });
  return createHash('sha256').update(JSON.stringify(contents)).digest('base64url');
}

function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.map(([name, part]) => [name, canonical(part)]);
}
