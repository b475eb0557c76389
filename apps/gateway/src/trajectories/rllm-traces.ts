import { invalidField } from '@broomwagon/contracts';
import { turnNumber, type TrajectoryRead, type TurnRecord } from '@broomwagon/state';
import { BranchReader, branchesTo } from './trajectory-branches';

/** Maximum traces or sessions of an answer, if its request has no limit. */
const MAX_ITEMS = 10_000;

/**
 * `limit` and `since` (seconds) of a query.
 * @param hasTimes the listed items have times of their own
 * @throws BroomwagonError VALIDATION_FAILED also for `since` of items without a time
 */
export function readList(query: URLSearchParams, hasTimes: boolean): { limit: number; sinceMs?: number } {
  const [limit, since] = [query.get('limit'), query.get('since')];
  if (since !== null && !hasTimes) throw invalidField('since', 'is not supported');
  if (limit !== null && !/^\d{1,6}$/.test(limit)) throw invalidField('limit', 'must be a whole number');
  const sinceMs = since === null ? undefined : Number(since) * 1_000;
  if (Number.isNaN(sinceMs)) throw invalidField('since', 'must be a number of seconds');
  return { limit: limit === null ? MAX_ITEMS : Number(limit), sinceMs };
}

/** The id of a trace, which contains its session and the number of its turn. */
function toTraceId(sessionId: string, number: number): string {
  return `${Buffer.from(sessionId).toString('base64url')}.${number}`;
}

/** Parses the id of a trace; undefined for a text that cannot be such an id. */
export function parseTraceId(id: string): { sessionId: string; number: number } | undefined {
  const [, session, number] = /^([\w-]+)\.(\d{1,15})$/.exec(id) ?? [];
  if (session === undefined) return undefined;
  return { sessionId: Buffer.from(session, 'base64url').toString('utf8'), number: Number(number) };
}

/**
 * The turns of a session as traces of rllm, in the order of their numbers: the trainer of rllm matches traces and steps
 * of an agent by their positions. A missing turn is a trace without tokens, with the reason in its `metadata`.
 * @param read reads the bytes of a payload; only payloads that a later turn extends stay in memory
 * @param wanted `number`: only the turn that the client knows by this number
 */
export async function* readTraces(
  { about, turns = [], missing = [], setBacks }: TrajectoryRead,
  read: (ref: string) => Promise<Buffer>,
  { limit, number: only }: { limit: number; number?: number },
): AsyncGenerator<object> {
  const isWanted = (number: number): boolean => only === undefined || number === only;
  const branches = branchesTo(turns).filter((branch) => isWanted(turnNumber(branch.at(-1)!.turn, setBacks)));
  const reader = new BranchReader(readWhileNeeded(branches, read), setBacks);
  const shared = { session_id: about!.sessionId, timestamp: about!.createdAtMs / 1_000 };
  const toMissing = (turn: number, reason: string) => ({
    trace_id: toTraceId(about!.sessionId, turn),
    ...shared,
    finish_reason: null,
    metadata: { turn, missing: reason },
  });
  const notRecorded = missing.filter(({ turn }) => isWanted(turn)).toSorted((a, b) => a.turn - b.turn);
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
    const { token_ids: ids, logprobs, messages } = contents!;
    const [prompt, completion] = [ids.slice(0, place.response_start), ids.slice(place.response_start)];
    yield {
      trace_id: toTraceId(about!.sessionId, number),
      ...shared,
      prompt_token_ids: prompt,
      completion_token_ids: completion,
      logprobs: logprobs?.slice(place.response_start) ?? null,
      finish_reason: place.finish_reason,
      weight_version: toVersion(turn),
      token_counts: { prompt: prompt.length, completion: completion.length },
      metadata: { turn: number, response_id: place.id },
      ...(messages && { messages: messages.slice(0, -1), response_message: messages.at(-1) }),
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

/** Weight version of the last token, if it is a number. */
function toVersion({ weights }: TurnRecord): number | null {
  const version = Number(weights.at(-1)?.version ?? Number.NaN);
  return Number.isSafeInteger(version) ? version : null;
}
