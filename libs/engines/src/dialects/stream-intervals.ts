import { isBroomwagonError } from '@broomwagon/contracts';
import type { GenerateOptions, GenerationRequest, GenerationResult } from '../engine-adapter';
import type { EngineHttp } from '../http/engine-http';
import { EventSizes } from '../stream/event-sizes';
import { isAtLeast } from './versions';

export const INTERVAL_FIELD = 'stream_interval';
/** A paused engine may answer late, and its description does not wait, milliseconds. */
const PROBE_TIMEOUT_MS = 1_000;
/** Field with a wrong value beside the interval, so that every engine refuses the probe and generates nothing. */
const WRONG_FIELD = 'temperature';
/** Tells readers of the log of an engine why it has refused a request; engines ignore it. */
const PROBE_QUERY = `?probe=${INTERVAL_FIELD}`;
/** Words with which engines refuse a field that they do not allow. */
const NOT_ALLOWED = /extra|unexpected|unknown|unrecogni[sz]ed|not permitted|not allowed|not supported/i;

/** How it is found out whether engines of a dialect take the field. */
interface IntervalRules {
  /** Route and body of a request that every engine refuses. */
  path: string;
  body: object;
  /** Whether a refusal shows that the engine takes the field; undefined: it shows nothing. */
  isTaken: (status: number, said: string) => boolean | undefined;
  /** First version with the field, for engines whose refusal shows nothing. */
  since: number[];
}

/**
 * vLLM names all fields with wrong values in one refusal, and ignores a field that it does not know. The field came
 * with https://github.com/vllm-project/vllm/pull/49754.
 */
export const VLLM_INTERVALS: IntervalRules = {
  path: '/v1/completions',
  body: { prompt: 'probe', max_tokens: 1, [INTERVAL_FIELD]: 0, [WRONG_FIELD]: 'none' },
  isTaken: (status, said) => {
    if (isNotAllowed(said)) return false;
    const isAboutFields = (status === 400 || status === 422) && said.includes(WRONG_FIELD);
    return isAboutFields ? said.includes(INTERVAL_FIELD) : undefined;
  },
  since: [0, 27, 0],
};

/** SGLang makes an object of sampling parameters, which fails for an unknown name, before it checks their values. */
export const SGLANG_INTERVALS: IntervalRules = {
  path: '/generate',
  body: { input_ids: [1], sampling_params: { max_new_tokens: 1, [INTERVAL_FIELD]: 1, [WRONG_FIELD]: -1 } },
  isTaken: (status, said) => {
    if (isNotAllowed(said) || status === 500) return false;
    return status === 400 && said.includes(WRONG_FIELD) ? true : undefined;
  },
  since: [0, 4, 7],
};

function isNotAllowed(said: string): boolean {
  return said.includes(INTERVAL_FIELD) && NOT_ALLOWED.test(said);
}

/** Tokens of one event that the body of a call asks for. */
export function askedInterval({ [INTERVAL_FIELD]: field, sampling_params: sampling }: Record<string, unknown>): number {
  const interval = Number(field ?? (sampling as Record<string, unknown> | undefined)?.[INTERVAL_FIELD] ?? 1);
  return interval > 1 ? interval : 1;
}

/** Asks the engine of one adapter for events of several tokens, if it takes the field `stream_interval`. */
export class StreamIntervals {
  private known?: boolean;
  /** The probe that runs now: calls that start together share it. */
  private probing?: Promise<boolean>;

  /**
   * @param rules absent: a plain server, which may refuse fields that it does not know; it is not probed
   * @param readVersion version that the engine reports
   */
  constructor(
    private readonly http: Pick<EngineHttp, 'call'>,
    private readonly rules?: IntervalRules,
    private readonly readVersion: () => Promise<unknown> = () => Promise.resolve(undefined),
  ) {}

  /**
   * Whether the engine takes the field: by a request that it refuses, or else by its version. An engine that does not
   * answer now is asked again by the next call.
   */
  async isTaken(): Promise<boolean> {
    if (this.known !== undefined || this.rules === undefined) return this.known ?? false;
    this.probing ??= this.probe(this.rules).finally(() => (this.probing = undefined));
    return this.probing;
  }

  private async probe({ path, body, isTaken, since }: IntervalRules): Promise<boolean> {
    const answer = await this.http
      .call('POST', path + PROBE_QUERY, body, undefined, PROBE_TIMEOUT_MS)
      .catch(() => undefined);
    this.known ??= answer && isTaken(answer.status, answer.text);
    if (this.known !== undefined) return this.known;
    const version = await this.readVersion().catch(() => undefined);
    const isAtVersion = typeof version === 'string' && isAtLeast(version, since);
    if (answer !== undefined && answer.status < 500 && version !== undefined) this.known ??= isAtVersion;
    return isAtVersion;
  }

  /**
   * The field for a call; empty if the caller's own fields have it, or the engine does not take it.
   * @param isParsed the engine parses the response as a chat: only the caller may ask for larger events
   */
  async field(
    { prompt, sampling, streamInterval = 1 }: GenerationRequest,
    isParsed = false,
  ): Promise<{ [INTERVAL_FIELD]?: number }> {
    const own = sampling?.streamInterval;
    const interval = own ?? (isParsed ? 1 : streamInterval);
    const isAsked = own !== undefined || interval > 1;
    if (!isAsked || prompt.engineFields?.[INTERVAL_FIELD] !== undefined) return {};
    const isOwnChance = this.rules === undefined && own !== undefined && this.known !== false;
    return isOwnChance || (await this.isTaken()) ? { [INTERVAL_FIELD]: interval } : {};
  }

  /** Runs a call, again without the field if the engine refuses the call because of it. */
  async run<Result>(call: () => Promise<Result>): Promise<Result> {
    const mayHaveField = this.known !== false;
    try {
      return await call();
    } catch (error) {
      const isAboutField = isBroomwagonError(error, 'ENGINE_REJECTED') && error.message.includes(INTERVAL_FIELD);
      if (!isAboutField || !mayHaveField) throw error;
      this.known = false;
      return call();
    }
  }

  /** Reads the stream of a call, and reports whether its events came as the engine was asked. */
  async watch(
    interval: number,
    options: GenerateOptions,
    read: (watched: GenerateOptions) => Promise<GenerationResult>,
  ): Promise<GenerationResult> {
    if (interval === 1) return read(options);
    const sizes = new EventSizes();
    const onTokens: GenerateOptions['onTokens'] = (increment) => {
      sizes.take(increment.tokenCount);
      options.onTokens?.(increment);
    };
    try {
      return await read(Object.assign({}, options, { onTokens }));
    } finally {
      const tokens = sizes.findOther(interval);
      if (tokens !== undefined) options.onEventSizes?.(tokens, interval);
    }
  }
}
