import type { ServerResponse } from 'node:http';
import type { Generation } from '../generations/generation';

/** Sets headers with what happened to a generation so far, unless the headers are sent. */
export function setHeaders(generation: Generation, response: ServerResponse): void {
  if (response.headersSent) return;
  const { serverId, spans, isVersionReported } = generation;
  const { attempts, queueMs, firstTokenMs } = countsOf(generation);
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

function countsOf({ attempts, startedAt, grantedAt, firstTokenAt }: Generation) {
  const sinceMs = (from?: number, to?: number): number | undefined =>
    from === undefined || to === undefined ? undefined : Math.round(to - from);
  return { attempts, queueMs: sinceMs(startedAt, grantedAt), firstTokenMs: sinceMs(grantedAt, firstTokenAt) };
}

/** What the headers of an answer say, as a field of its body. */
export function detailsOf(generation: Generation): object {
  const { serverId, spans, isVersionReported } = generation;
  const { attempts, queueMs, firstTokenMs } = countsOf(generation);
  const recorded = recordedOf([generation]);
  return {
    attempts,
    ...(serverId !== undefined && { server: serverId }),
    weight_versions: spans,
    ...(spans.length > 0 && { weight_source: isVersionReported ? 'engine' : 'lease' }),
    ...(queueMs !== undefined && { queue_ms: queueMs }),
    ...(firstTokenMs !== undefined && { first_token_ms: firstTokenMs }),
    ...(recorded !== '' && { trajectory: recorded }),
  };
}

/** In headers of a whole response, and in trailers of a stream. */
const RECORDED = 'x-broomwagon-trajectory';

/** Names in a header the turns of the trajectory that the response is, and whether each is recorded. */
export function setRecorded(generations: Generation[], response: ServerResponse): void {
  const recorded = recordedOf(generations);
  if (recorded === '' || response.headersSent) return;
  response.setHeader(RECORDED, recorded);
  const stamp = generations.findLast(({ recording }) => recording?.stamp !== undefined)?.recording?.stamp;
  if (stamp !== undefined) response.setHeader('x-broomwagon-stamp', stamp);
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
    .map(({ state, turn, number = turn, reason }) =>
      [state, number ?? '', ...(state === 'missing' ? [reason] : [])].join(':'),
    )
    .join(',');
}
