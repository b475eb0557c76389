import type { AgentGroup, AgentSession, AgentTurn } from './agent-workload';

/** Tokens of a block of the trace, which has an id for each; equal ids mean an equal prefix up to the block's end. */
const BLOCK_TOKENS = 512;
/** Assumed time of a generated token when the trace was recorded; the rest of a gap is the user's. */
const SECONDS_OF_A_TOKEN = 0.03;

interface TraceRequest {
  /** Milliseconds. */
  timestamp: number;
  input_length: number;
  output_length: number;
  hash_ids: number[];
}

/**
 * Reads a trace in the format of Mooncake (one request a line) as sessions. A request continues the session whose last
 * request ended with the longest of its prefixes, of two blocks at least. All sessions share the first block.
 * @throws RangeError for a line without these fields
 */
export function readMooncakeTrace(text: string): AgentGroup {
  const sessions: TraceRequest[][] = [];
  /** By the last whole block of its last request: the session. */
  const ends = new Map<number, TraceRequest[]>();
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    const request = parseRequest(line, index + 1);
    const { hash_ids: ids } = request;
    const whole = Math.min(ids.length, Math.floor(request.input_length / BLOCK_TOKENS));
    let length = whole;
    while (length >= 2 && !ends.has(ids[length - 1]!)) length -= 1;
    let session = length >= 2 ? ends.get(ids[length - 1]!) : undefined;
    if (session) ends.delete(ids[length - 1]!);
    else sessions.push((session = []));
    session.push(request);
    if (whole >= 2) ends.set(ids[whole - 1]!, session);
  }
  return {
    id: 'trace',
    prefixTokens: BLOCK_TOKENS,
    sessions: sessions.map((requests, index) => toSession(requests, index)),
  };
}

function parseRequest(line: string, number: number): TraceRequest {
  const request = JSON.parse(line) as Partial<TraceRequest>;
  const numbers = [request.timestamp, request.input_length, request.output_length];
  if (!numbers.every((value) => Number.isFinite(value)) || !Array.isArray(request.hash_ids)) {
    throw new RangeError(`line ${number} of the trace lacks timestamp, input_length, output_length or hash_ids`);
  }
  return request as TraceRequest;
}

function toSession(requests: readonly TraceRequest[], index: number): AgentSession {
  let context = BLOCK_TOKENS;
  const turns = requests.map((request, place): AgentTurn => {
    const { timestamp, input_length: input, output_length: output } = request;
    const madeTokens = Math.max(1, output);
    const addedTokens = Math.max(1, input - context);
    context += addedTokens + madeTokens;
    const gap = ((requests[place + 1]?.timestamp ?? timestamp) - timestamp) / 1_000;
    return { addedTokens, madeTokens, toolSeconds: Math.max(0, gap - SECONDS_OF_A_TOKEN * madeTokens) };
  });
  return { id: `t${index}`, groupId: 'trace', startsAtSeconds: requests[0]!.timestamp / 1_000, turns };
}
