import type { Schemas } from '@broomwagon/admin-client';
import { type Cell, formatDuration, formatFields, formatTable, formatTime } from '../tables';

type Explanation = Schemas['ExplainRoundReply'];

/** Formats the explanation of a round: its state, its end, causes with runbook and advice, and awaited requests. */
export function formatExplanation(explanation: Explanation): string {
  const { waitsFor, causes, requests, unread } = explanation;
  return [
    [waitsFor, formatFields(listFields(explanation))].join('\n'),
    ...unread.map(({ part, code, reason }) => `No answer about ${part}: ${code}. ${reason}`),
    ...causes.map(formatCause),
    ...(requests === undefined ? [] : [formatTable(requests.map(toRow))]),
  ].join('\n\n');
}

function listFields({ state, ageMs, medianMs, end, atMs, places, usedPlaces }: Explanation): Record<string, Cell> {
  const fields = {
    state,
    ageMs,
    'median of earlier rounds': medianMs && formatDuration(medianMs),
    'expected end': end && formatEnd(end, atMs),
    'requests on ready servers': places === undefined ? undefined : `${usedPlaces} of ${places} places`,
  };
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function formatEnd({ byMs, reason }: Schemas['RoundEnd'], atMs: number): string {
  return byMs === undefined ? reason : `by ${formatTime(byMs)}, in ${formatDuration(byMs - atMs)}: ${reason}`;
}

function formatCause({ severity, message, advice, sinceMs, runbook }: Explanation['causes'][0]): string {
  const since = sinceMs === undefined ? '' : ` (since ${formatTime(sinceMs)})`;
  return `${severity.toUpperCase()}: ${message}${since}\n  ${advice}\n  Runbook: ${runbook}`;
}

function toRow(request: Schemas['AwaitedRequest']) {
  const { requestId, state, ageMs, tokenCount, maxTokens, tokensPerSecond, serverId, workerId, problem } = request;
  return {
    request: requestId,
    state,
    age: formatDuration(ageMs),
    tokens: maxTokens === undefined ? tokenCount : `${tokenCount}/${maxTokens}`,
    'tokens/s': tokensPerSecond,
    server: serverId,
    worker: workerId,
    problem,
  };
}
