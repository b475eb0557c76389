/** Dialects of the engine of `bench fleet`. */
export type FleetDialect = 'vllm' | 'sglang';

/** End of a stream: all tokens are generated, or an abort by id. */
export type StreamEnd = 'length' | 'abort';

/** Number of token positions with values of their own; a longer response repeats them. */
const POSITIONS = 4_096;
const PROMPT_TOKENS = 8;
const ID = 'bench';

const tokenIds = Array.from({ length: POSITIONS }, (_, index) => 1_000 + ((index * 7_919) % 120_000));
/** Log probabilities in 32 bits, as engines compute them: most have 17 digits as JSON. */
const logprobs = tokenIds.map((id) => Math.fround(Math.log((1 + (id % 997)) / 1_000)));
const words = tokenIds.map((id) => ` w${(id % 1_296).toString(36)}`);

function pick<T>(values: readonly T[], from: number, to: number): T[] {
  return Array.from({ length: to - from }, (_, index) => values[(from + index) % POSITIONS]!);
}

/**
 * Answers of an engine as bytes, which are made once and sent to every caller. They have token ids and log
 * probabilities in the forms of vLLM and SGLang; the tokens mean nothing.
 */
export class PreparedAnswers {
  private readonly events = new Map<string, Buffer>();
  private readonly wholes = new Map<string, Buffer>();

  constructor(private readonly dialect: FleetDialect) {}

  /** The event with these tokens, as one chunk of HTTP; with an end, the events that end the stream follow it. */
  event(from: number, to: number, hasLogprobs: boolean, end?: StreamEnd): Buffer {
    const name = `${from} ${to} ${hasLogprobs} ${end}`;
    const known = this.events.get(name);
    if (known !== undefined) return known;
    const event = this.dialect === 'vllm' ? vllmEvent : sglangEvent;
    const last = end === undefined ? '' : this.dialect === 'vllm' ? `${data(vllmUsage(to))}${DONE}` : DONE;
    const text = Buffer.from(data(event(from, to, hasLogprobs, end)) + last);
    const chunk = Buffer.concat([Buffer.from(`${text.length.toString(16)}\r\n`), text, Buffer.from('\r\n')]);
    this.events.set(name, chunk);
    return chunk;
  }

  /** The body of an answer that is not streamed. */
  whole(count: number, hasLogprobs: boolean, end: StreamEnd = 'length'): Buffer {
    const name = `${count} ${hasLogprobs} ${end}`;
    const known = this.wholes.get(name);
    if (known !== undefined) return known;
    const answer = (this.dialect === 'vllm' ? vllmEvent : sglangEvent)(0, count, hasLogprobs, end);
    const body = Buffer.from(JSON.stringify(answer));
    this.wholes.set(name, body);
    return body;
  }
}

const DONE = 'data: [DONE]\n\n';

function data(event: object): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

const VLLM_FIELDS = { id: `cmpl-${ID}`, object: 'text_completion', created: 1_795_935_760, model: ID };

function vllmUsageFields(count: number) {
  return { prompt_tokens: PROMPT_TOKENS, total_tokens: PROMPT_TOKENS + count, completion_tokens: count };
}

function vllmUsage(count: number): object {
  return { ...VLLM_FIELDS, choices: [], usage: vllmUsageFields(count) };
}

function vllmEvent(from: number, to: number, hasLogprobs: boolean, end: StreamEnd | undefined): object {
  const tokens = pick(words, from, to);
  const values = pick(logprobs, from, to);
  let offset = from * 3;
  const choice = {
    index: 0,
    text: tokens.join(''),
    logprobs: hasLogprobs
      ? {
          text_offset: tokens.map((word) => (offset += word.length) - word.length),
          token_logprobs: values,
          tokens,
          top_logprobs: tokens.map((word, index) => ({ [word]: values[index] })),
        }
      : null,
    finish_reason: end ?? null,
    stop_reason: null,
    prompt_token_ids: null,
    token_ids: pick(tokenIds, from, to),
  };
  return { ...VLLM_FIELDS, choices: [choice], usage: vllmUsageFields(to) };
}

function sglangEvent(from: number, to: number, hasLogprobs: boolean, end: StreamEnd | undefined): object {
  const ids = pick(tokenIds, from, to);
  const values = pick(logprobs, from, to);
  return {
    text: pick(words, from, to).join(''),
    output_ids: ids,
    meta_info: {
      id: ID,
      finish_reason: end === undefined ? null : { type: end, ...(end === 'length' && { length: to }) },
      prompt_tokens: PROMPT_TOKENS,
      completion_tokens: to,
      cached_tokens: 0,
      weight_version: '1',
      ...(hasLogprobs && { output_token_logprobs: ids.map((id, index) => [values[index], id, null]) }),
    },
  };
}
