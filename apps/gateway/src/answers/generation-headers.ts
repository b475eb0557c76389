import type { ServerResponse } from 'node:http';
import type { Generation } from '../core/generation';

/** Sets headers with the state of a generation so far, unless the headers are sent. */
export function setHeaders(generation: Generation, response: ServerResponse): void {
  if (response.headersSent) return;
  const { spans, isVersionReported } = generation.report;
  const { serverId, attempts, queueMs, firstTokenMs } = generation.calls;
  const versions = spans
    .map(({ version, start, end }) => `${encodeURIComponent(version.toWellFormed())}:${start}-${end}`)
    .join(',');
  response.setHeader('x-broomwagon-attempts', attempts);
  if (serverId !== undefined) response.setHeader('x-broomwagon-server', encodeURIComponent(serverId));
  if (versions !== '') response.setHeader('x-broomwagon-weight-versions', versions);
  if (versions !== '' && !isVersionReported) response.setHeader('x-broomwagon-weight-source', 'lease');
  if (queueMs !== undefined) response.setHeader('x-broomwagon-queue-ms', queueMs);
  if (firstTokenMs !== undefined) response.setHeader('x-broomwagon-first-token-ms', firstTokenMs);
}

export function buildDetails(generation: Generation): object {
  const { spans, isVersionReported } = generation.report;
  const { serverId, attempts, queueMs, firstTokenMs } = generation.calls;
  const recorded = formatRecordings([generation]);
  return {
    attempts,
    ...(serverId !== undefined && { server: serverId }),
    weight_versions: spans,
    ...(spans.length > 0 && { weight_source: isVersionReported ? 'engine' : 'lease' }),
    ...(queueMs !== undefined && { queue_ms: queueMs }),
    ...(firstTokenMs !== undefined && { first_token_ms: firstTokenMs }),
    ...(recorded !== '' && { trajectory: recorded, stamp: findStamp([generation]) }),
  };
}

/** Name of the header of a whole response, and of the trailer of a stream. */
const RECORDED = 'x-broomwagon-trajectory';
const STAMP = 'x-broomwagon-stamp';

/** Sets headers: for each choice its turn and whether the turn is recorded, and the stamp. */
export function setRecorded(generations: Generation[], response: ServerResponse): void {
  if (response.headersSent) return;
  for (const [name, value] of Object.entries(recordedFields(generations))) response.setHeader(name, value);
}

/** Announces trailers at the start of a response whose turns are recorded only at its end. */
export function announceRecorded(generations: Generation[], response: ServerResponse): void {
  setRecorded(generations, response);
  // Answers of HTTP/1.0 have no trailers.
  if (!response.hasHeader(RECORDED) || !response.useChunkedEncodingByDefault) return;
  response.setHeader('trailer', `${RECORDED}, ${STAMP}`);
}

/** Adds the trailers at the end of an announced response. */
export function addRecorded(generations: Generation[], response: ServerResponse): void {
  const fields = recordedFields(generations);
  if (Object.keys(fields).length > 0) response.addTrailers(fields);
}

function recordedFields(generations: Generation[]): Record<string, string> {
  const recorded = formatRecordings(generations);
  const stamp = findStamp(generations);
  return { ...(recorded !== '' && { [RECORDED]: recorded }), ...(stamp !== undefined && { [STAMP]: stamp }) };
}

function findStamp(generations: Generation[]): string | undefined {
  return generations.findLast(({ recording }) => recording?.stamp !== undefined)?.recording?.stamp;
}

function formatRecordings(generations: Generation[]): string {
  return generations
    .flatMap(({ recording }) => recording ?? [])
    .map(({ state, turn, number = turn, reason }) =>
      [state, number ?? '', ...(state === 'missing' ? [reason] : [])].join(':'),
    )
    .join(',');
}
