import { invalidField } from '@broomwagon/contracts';
import { turnNumber, type TrajectoryRead, type TurnRecord } from '@broomwagon/state';
import { BranchReader, branchesTo } from './trajectory-branches';

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

/**
 * The turns of a session as traces of rllm, in the order of their numbers: its trainer matches traces and steps of an
 * agent by their places. A turn that is missing is a trace without tokens that gives the reason in its `metadata`.
 * @param read bytes of a payload; only payloads that a later turn extends stay in memory
 */
export async function* readTraces(
  { about, turns = [], missing = [], setBacks }: TrajectoryRead,
  read: (ref: string) => Promise<Buffer>,
  limit: number,
): AsyncGenerator<object> {
  const branches = branchesTo(turns);
  const reader = new BranchReader(readWhileNeeded(branches, read), setBacks);
  const shared = { session_id: about!.sessionId, timestamp: about!.createdAtMs / 1_000 };
  const toMissing = (turn: number, reason: string) => ({
    trace_id: `missing-${turn}`,
    ...shared,
    finish_reason: null,
    metadata: { turn, missing: reason },
  });
  const notRecorded = missing.toSorted((a, b) => a.turn - b.turn);
  let count = 0;
  for (const branch of branches) {
    const turn = branch.at(-1)!;
    const number = turnNumber(turn.turn, setBacks);
    while (notRecorded.length > 0 && notRecorded[0]!.turn < number && count++ < limit) {
      const { turn: lost, reason } = notRecorded.shift()!;
      yield toMissing(lost, reason);
    }
    if (count++ >= limit) return;
    const contents = await reader.next(branch);
    const place = contents?.turns.at(-1);
    if (place?.turn !== number) {
      yield toMissing(number, reader.gaps.get(turn.turn)!.reason);
      continue;
    }
    const { token_ids: ids, logprobs } = contents!;
    const [prompt, completion] = [ids.slice(0, place.response_start), ids.slice(place.response_start)];
    yield {
      trace_id: place.id,
      ...shared,
      prompt_token_ids: prompt,
      completion_token_ids: completion,
      logprobs: logprobs?.slice(place.response_start) ?? null,
      finish_reason: place.finish_reason,
      weight_version: toVersion(turn),
      token_counts: { prompt: prompt.length, completion: completion.length },
      metadata: { turn: number },
    };
  }
  for (const { turn, reason } of notRecorded) if (count++ < limit) yield toMissing(turn, reason);
}

/** Reads each payload once, and keeps it until the last turn whose branch contains it. */
function readWhileNeeded(branches: readonly TurnRecord[][], read: (ref: string) => Promise<Buffer>) {
  const uses = new Map<string, number>();
  for (const { ref } of branches.flat()) uses.set(ref, (uses.get(ref) ?? 0) + 1);
  const kept = new Map<string, Promise<Buffer>>();
  return (ref: string): Promise<Buffer> => {
    const payload = kept.get(ref) ?? read(ref);
    kept.set(ref, payload);
    uses.set(ref, uses.get(ref)! - 1);
    if (uses.get(ref) === 0) kept.delete(ref);
    return payload;
  };
}

/** Of the last token, if it is a number. */
function toVersion({ weights }: TurnRecord): number | null {
  const version = Number(weights.at(-1)?.version ?? Number.NaN);
  return Number.isSafeInteger(version) ? version : null;
}
