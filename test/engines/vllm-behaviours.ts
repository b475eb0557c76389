import { ZOO } from '../../lab/engine-simulator/src/zoo/zoo';

/** A text that no run contains. */
const ABSENT_STOP = '\u0001absent\u0001';

/** Whether a vLLM has shown the behaviour of an entry of the zoo, by the names of the entries. */
const IS_SHOWN: Record<string, (seen: VllmBehaviours) => boolean> = {
  'vllm-stop-withheld': (seen) => seen['vllm-stop-withheld'] === ABSENT_STOP.length - 1,
  'vllm-half-characters': (seen) => seen['vllm-half-characters'] === true,
  'usage-in-each-chunk': (seen) => seen['usage-in-each-chunk'],
};

/** Entries whose behaviours {@link observeVllm} sees. */
export const VLLM_ENTRIES = Object.keys(IS_SHOWN);

/** Why {@link observeVllm} cannot ask a healthy vLLM for the behaviours of other entries of vLLM. */
export const UNOBSERVED: Record<string, string> = {
  'interval-ignored': 'releases before vLLM 0.27',
  'abort-without-tokens': 'releases before vLLM 0.10.1',
  'stream-interval': 'the engine has to be started with another `--stream-interval`',
  'done-without-reason': 'vLLM 0.9 alone, and aborts of a route that is off by default',
  'error-in-data': 'the engine has to fail within a stream',
  'full-429': 'the router of vLLM, no engine',
  'hung-healthy': 'the engine has to hang',
  'stale-metrics': 'a defect of vLLM 0.23.1',
  'closes-unnoticed': 'a defect of vLLM 0.22.0',
};

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

/** Tokens of each run. */
const TOKENS = 48;
/** Tokens of a model are other ones for each prompt, and not all have a stop text or a character in parts. */
const PROMPTS = ['How many?', 'Natalia sold clips', 'Zwölf Boxkämpfer', '名前は何ですか', '1, 2, 3'];
/** A stop text that a run contains, of several tokens; a replacement may be of one byte of a character. */
const STOP_TEXT = /[^\uFFFD]{2,5}/;

/**
 * Asks a vLLM for the same tokens in several ways, with one prompt after the other until it has shown all behaviours.
 * @throws Error if the tokens differ
 */
export async function observeVllm(url: string, model: string, apiKey?: string): Promise<VllmBehaviours> {
  let seen: VllmBehaviours | undefined;
  for (const prompt of PROMPTS) {
    const more = await observePrompt(url, model, prompt, apiKey);
    // The next prompts are tried for behaviours that the first prompt has not shown.
    seen = Object.assign({}, more, seen && withoutAbsent(seen)) as VllmBehaviours;
    if (Object.values(seen).every((value) => value !== undefined)) break;
  }
  return seen!;
}

const withoutAbsent = (seen: VllmBehaviours): object =>
  Object.fromEntries(Object.entries(seen).filter(([, value]) => value !== undefined));

/** Behaviours that an engine of this release must have shown, as the entries of the zoo claim, and has not. */
export function findAbsent(seen: VllmBehaviours, version: string, zoo: typeof ZOO = ZOO): string[] {
  return zoo
    .filter(({ name, release }) => VLLM_ENTRIES.includes(name) && isClaimed(release, version))
    .filter(({ name }) => !IS_SHOWN[name]!(seen))
    .map(({ name, release }) => `${name}: vLLM ${version} has not shown it, and the zoo claims: ${release}`);
}

/** Whether the text of an entry names this version of vLLM, or all versions from an earlier one on. */
function isClaimed(release: string, version: string): boolean {
  const first = /vLLM from (\d+(?:\.\d+)*)/.exec(release)?.[1];
  if (first === undefined) return new RegExp(`vLLM ${version.replaceAll('.', '\\.')}(?![\\d.])`).test(release);
  const [wanted, own] = [first, version].map((text) => text.split('.').map(Number)) as [number[], number[]];
  const place = wanted.findIndex((part, index) => part !== (own[index] ?? 0));
  return place < 0 || (own[place] ?? 0) > wanted[place]!;
}

/** Version of a vLLM, without its build: `0.32.0` of `0.32.0+cpu`. */
export async function readVersion(url: string, apiKey?: string): Promise<string> {
  const answer = await fetch(`${url}/version`, { headers: apiKey ? { authorization: `Bearer ${apiKey}` } : {} });
  const { version } = (await answer.json()) as { version: string };
  return /^[\d.]*\d/.exec(version)![0];
}

async function observePrompt(url: string, model: string, prompt: string, apiKey?: string): Promise<VllmBehaviours> {
  const post = (path: string, body: object): Promise<Response> =>
    fetch(`${url}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...(apiKey && { authorization: `Bearer ${apiKey}` }) },
      body: JSON.stringify({ model, ...body }),
    });
  const run = async (more: object): Promise<Run> => {
    const usage = { stream_options: { include_usage: true, continuous_usage_stats: true } };
    const sampling = { max_tokens: TOKENS, temperature: 0, seed: 7, return_token_ids: true };
    return readRun(await post('/v1/completions', { prompt, stream: true, ...usage, ...sampling, ...more }));
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

/** Differences of two engines, by the names of behaviours, also if only one engine has shown a behaviour. */
export function compareBehaviours(real: VllmBehaviours, entry: VllmBehaviours): string[] {
  return (Object.keys(entry) as (keyof VllmBehaviours)[])
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
