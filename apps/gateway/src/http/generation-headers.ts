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

/** In headers of a whole response, and in trailers of a stream. */
const RECORDED = 'x-broomwagon-trajectory';

/** Names in a header the turns of the trajectory that the response is, and whether each is recorded. */
export function setRecorded(generations: Generation[], response: ServerResponse): void {
  const recorded = recordedOf(generations);
  if (recorded !== '' && !response.headersSent) response.setHeader(RECORDED, recorded);
}

/** At the start of a stream: the turns are not recorded before its end. */
export function announceRecorded(generations: Generation[], response: ServerResponse): void {
  setRecorded(generations, response);
  if (response.hasHeader(RECORDED)) response.setHeader('trailer', RECORDED);
}

/** At the end of a stream. */
export function addRecorded(generations: Generation[], response: ServerResponse): void {
  const recorded = recordedOf(generations);
  if (recorded !== '') response.addTrailers({ [RECORDED]: recorded });
}

function recordedOf(generations: Generation[]): string {
  return generations
    .flatMap(({ recording }) => recording ?? [])
    .map(({ state, turn, reason }) => [state, turn ?? '', ...(state === 'missing' ? [reason] : [])].join(':'))
    .join(',');
}
