import type { ServerResponse } from 'node:http';
import type { Generation } from '../generations/generation';

/** Sets headers with what happened to a generation so far, unless the headers are sent. */
export function setHeaders(generation: Generation, response: ServerResponse): void {
  if (response.headersSent) return;
  for (const [name, value] of Object.entries(headersOf(generation))) response.setHeader(name, value);
}

function headersOf(generation: Generation): Record<string, string> {
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
