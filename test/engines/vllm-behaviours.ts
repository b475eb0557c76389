/** Entries whose behaviours {@link observeVllm} sees. */
export const VLLM_ENTRIES = ['vllm-stop-withheld', 'vllm-half-characters', 'usage-in-each-chunk'];

/** Behaviours of a vLLM as its streams show them. A key is the name of an entry of the zoo, or of its evidence. */
export interface VllmBehaviours {
  /** Maximum number of missing characters while a stop text could begin; expected: its length less one. */
  'vllm-stop-withheld': number;
  /** Most missing characters, as in `vllm-stop-withheld`, with `include_stop_str_in_output`. */
  withheldWithIncludedStop: number;
  stopEnd: StopEnd | undefined;
  /** End at a stop text with `include_stop_str_in_output`. */
  includedStopEnd: StopEnd | undefined;
  /** No chunk has text for the end of a character that is not whole; undefined: no such character was seen. */
  'vllm-half-characters': boolean | undefined;
  /** Whether each chunk counts the tokens so far, if the request asks for it. */
  'usage-in-each-chunk': boolean;
  /** Chunks with a finish reason; the chunk has the last token; `[DONE]` is last. */
  finalChunks: number;
  endsWithLastToken: boolean;
  endsWithDone: boolean;
}

/** End of a response at a stop text: whether the text has the stop text, and the reason. */
interface StopEnd {
  text: 'before' | 'with' | 'other';
  reason: string | null;
  stopReason: string | number | null;
}

interface Chunk {
  choices: {
    text: string;
    token_ids?: number[] | null;
    finish_reason: string | null;
    stop_reason?: string | number | null;
  }[];
  usage?: { completion_tokens: number } | null;
}

interface Run {
  chunks: Chunk[];
  isDone: boolean;
  ids: number[];
  text: string;
  /** Length of the text by number of tokens, at each end of a chunk but the last. */
  lengths: Map<number, number>;
}

/** Tokens of each run; a text that no run contains. */
const TOKENS = 48;
const ABSENT_STOP = '\u0001absent\u0001';
/** A stop text that a run contains, of several tokens; a replacement may be of one byte of a character. */
const STOP_TEXT = /[^\uFFFD]{2,5}/;

/** Asks a vLLM for the same tokens in several ways. @throws Error if the tokens differ */
export async function observeVllm(url: string, model: string, apiKey?: string): Promise<VllmBehaviours> {
  const post = (path: string, body: object): Promise<Response> =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(apiKey && { authorization: `Bearer ${apiKey}` }) },
      body: JSON.stringify({ model, ...body }),
    });
  const run = async (more: object): Promise<Run> => {
    const usage = { stream_options: { include_usage: true, continuous_usage_stats: true } };
    const sampling = { max_tokens: TOKENS, temperature: 0, seed: 7, return_token_ids: true };
    return readRun(
      await post('/v1/completions', { prompt: 'How many?', stream: true, ...usage, ...sampling, ...more }),
    );
  };
  const decode = async (tokens: number[]): Promise<string> =>
    ((await (await post('/detokenize', { tokens })).json()) as { prompt: string }).prompt;

  const plain = await run({});
  const included = { include_stop_str_in_output: true };
  const [open, openIncluded] = [await run({ stop: ABSENT_STOP }), await run({ stop: ABSENT_STOP, ...included })];
  for (const { ids } of [open, openIncluded]) {
    if (`${ids}` !== `${plain.ids}`) throw new Error(`${url} gives other tokens for the same greedy request`);
  }
  const stop = STOP_TEXT.exec(plain.text.slice(plain.text.length / 2))?.[0];
  const endAt = async (more: object) =>
    stop === undefined ? undefined : toStopEnd(plain.text, stop, await run({ stop, ...more }));
  const choices = plain.chunks.flatMap((chunk) => chunk.choices);
  const last = choices.find(({ finish_reason: reason }) => reason !== null);
  let count = 0;
  return {
    'vllm-stop-withheld': missing(plain, open),
    withheldWithIncludedStop: missing(plain, openIncluded),
    stopEnd: await endAt({}),
    includedStopEnd: await endAt(included),
    'vllm-half-characters': await withholdsHalves(plain, decode),
    'usage-in-each-chunk': plain.chunks.every(({ choices: [choice], usage }) => {
      count += choice?.token_ids?.length ?? 0;
      return usage?.completion_tokens === count;
    }),
    finalChunks: choices.filter(({ finish_reason: reason }) => reason !== null).length,
    endsWithLastToken: (last?.token_ids ?? []).length > 0,
    endsWithDone: plain.isDone,
  };
}

/** Differences of two engines, by the names of behaviours. A behaviour that one has not shown is no difference. */
export function compareBehaviours(real: VllmBehaviours, entry: VllmBehaviours): string[] {
  return (Object.keys(entry) as (keyof VllmBehaviours)[])
    .filter((name) => real[name] !== undefined && entry[name] !== undefined)
    .filter((name) => JSON.stringify(real[name]) !== JSON.stringify(entry[name]))
    .map((name) => `${name}: the engine ${JSON.stringify(real[name])}, the zoo ${JSON.stringify(entry[name])}`);
}

async function readRun(answer: Response): Promise<Run> {
  const body = await answer.text();
  if (!answer.ok) throw new Error(`${answer.url} answered ${answer.status}: ${body}`);
  const events = body.split('\n').flatMap((line) => (line.startsWith('data: ') ? [line.slice('data: '.length)] : []));
  const chunks = events.filter((event) => event !== '[DONE]').map((event) => JSON.parse(event) as Chunk);
  const run: Run = { chunks, isDone: events.at(-1) === '[DONE]', ids: [], text: '', lengths: new Map() };
  for (const { choices } of chunks) {
    for (const { text, token_ids: ids, finish_reason: reason } of choices) {
      run.ids.push(...(ids ?? []));
      run.text += text;
      if (reason === null) run.lengths.set(run.ids.length, run.text.length);
    }
  }
  return run;
}

function missing(plain: Run, other: Run): number {
  const differences = [...other.lengths].map(([count, length]) => (plain.lengths.get(count) ?? length) - length);
  return Math.max(0, ...differences);
}

function toStopEnd(plain: string, stop: string, { text, chunks }: Run): StopEnd {
  const start = plain.indexOf(stop);
  const last = chunks.flatMap(({ choices }) => choices).findLast(({ finish_reason: reason }) => reason !== null);
  const isBefore = text === plain.slice(0, start);
  const isWith = text === plain.slice(0, start + stop.length);
  return {
    text: isBefore ? 'before' : isWith ? 'with' : 'other',
    reason: last?.finish_reason ?? null,
    stopReason: last?.stop_reason === stop ? 'the stop text' : (last?.stop_reason ?? null),
  };
}

async function withholdsHalves(run: Run, decode: (ids: number[]) => Promise<string>): Promise<boolean | undefined> {
  let seen: boolean | undefined;
  for (const [count, length] of run.lengths) {
    const decoded = await decode(run.ids.slice(0, count));
    if (decoded.endsWith('\uFFFD')) seen = (seen ?? true) && length < decoded.length;
  }
  return seen;
}
