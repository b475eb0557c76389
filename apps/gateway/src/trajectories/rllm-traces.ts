import { invalidField } from '@broomwagon/contracts';
import { turnNumber, type TrajectoryRead, type TurnRecord } from '@broomwagon/state';
import { type BranchReader, branchesOf } from './trajectory-branches';

/** Most traces of an answer, if its request names no limit. */
const MAX_TRACES = 10_000;

/** `limit` of a query. @throws BroomwagonError VALIDATION_FAILED also for `since`: turns have no time of their own */
export function readLimit(query: URLSearchParams): number {
  if (query.has('since')) throw invalidField('since', 'is not supported');
  const limit = query.get('limit');
  if (limit === null) return MAX_TRACES;
  if (!/^\d{1,6}$/.test(limit)) throw invalidField('limit', 'must be a whole number');
  return Number(limit);
}

/** The turns of a session as traces of rllm, branch by branch: one branch at a time is in memory. */
export async function* readTraces(
  { about, turns = [], setBacks }: TrajectoryRead,
  reader: BranchReader,
  limit: number,
): AsyncGenerator<object> {
  const written = new Set<number>();
  const byNumber = new Map(turns.map((turn) => [turnNumber(turn.turn, setBacks), turn]));
  for (const branch of branchesOf(turns)) {
    const contents = await reader.next(branch);
    for (const place of contents?.turns ?? []) {
      if (written.size >= limit) return;
      if (written.has(place.turn)) continue;
      written.add(place.turn);
      const { token_ids: ids, logprobs } = contents!;
      const [prompt, completion] = [ids.slice(0, place.response_start), ids.slice(place.response_start, place.end)];
      yield {
        trace_id: place.id,
        session_id: about!.sessionId,
        prompt_token_ids: prompt,
        completion_token_ids: completion,
        logprobs: logprobs?.slice(place.response_start, place.end) ?? null,
        finish_reason: place.finish_reason,
        weight_version: toVersion(byNumber.get(place.turn)!),
        token_counts: { prompt: prompt.length, completion: completion.length },
        timestamp: about!.createdAtMs / 1_000,
        metadata: { turn: place.turn },
      };
    }
  }
}

/** Of the last token, if it is a number. */
function toVersion({ weights }: TurnRecord): number | null {
  const version = Number(weights.at(-1)?.version ?? Number.NaN);
  return Number.isSafeInteger(version) ? version : null;
}
