import type { Generation } from '../generations/generation';

/** What happened to a generation so far, for the headers of its response. */
export function headersOf(generation: Generation): Record<string, string> {
  const { serverId, spans, attempts, startedAt, grantedAt, firstTokenAt } = generation;
  const versions = spans
    .map(({ version, start, end }) => `${encodeURIComponent(version.toWellFormed())}:${start}-${end}`)
    .join(',');
  const sinceMs = (from: number, to: number): string => String(Math.round(to - from));
  return {
    'x-broomwagon-attempts': String(attempts),
    ...(serverId !== undefined && { 'x-broomwagon-server': encodeURIComponent(serverId) }),
    ...(versions !== '' && { 'x-broomwagon-weight-versions': versions }),
    ...(versions !== '' && !generation.isVersionReported && { 'x-broomwagon-weight-source': 'lease' }),
    ...(grantedAt !== undefined && { 'x-broomwagon-queue-ms': sinceMs(startedAt, grantedAt) }),
    ...(grantedAt !== undefined &&
      firstTokenAt !== undefined && { 'x-broomwagon-first-token-ms': sinceMs(grantedAt, firstTokenAt) }),
  };
}
