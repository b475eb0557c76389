import { BroomwagonError, type EngineDialect, type SamplingParameters } from '@broomwagon/contracts';

type Names = Partial<Record<keyof SamplingParameters, string>>;

const PLAIN: Names = { temperature: 'temperature', topP: 'top_p', seed: 'seed', stop: 'stop' };
const EXTENDED: Names = {
  ...PLAIN,
  topK: 'top_k',
  minP: 'min_p',
  stopTokenIds: 'stop_token_ids',
  minTokens: 'min_tokens',
  repetitionPenalty: 'repetition_penalty',
};

/**
 * Names of each dialect for our sampling parameters. `logprobs` and `streamInterval` have no entry: each route requests
 * them in its own way.
 */
const WIRE_NAMES: Record<EngineDialect, Names> = {
  vllm: EXTENDED,
  sglang: { ...EXTENDED, seed: 'sampling_seed', minTokens: 'min_new_tokens' },
  openai: PLAIN,
};

/** Sampling parameters with the names of a dialect. @throws BroomwagonError ENGINE_REJECTED for an unknown parameter */
export function wireSampling(
  dialect: EngineDialect,
  sampling: SamplingParameters = {},
  minTokens: number | undefined = sampling.minTokens,
): Record<string, unknown> {
  const names = WIRE_NAMES[dialect];
  const wire: Record<string, unknown> = {};
  const all = minTokens === sampling.minTokens ? sampling : { ...sampling, minTokens };
  for (const [name, value] of Object.entries(all)) {
    if (value === undefined || name === 'logprobs' || name === 'streamInterval') continue;
    const wireName = Object.hasOwn(names, name) ? names[name as keyof SamplingParameters] : undefined;
    if (wireName === undefined) {
      throw new BroomwagonError('ENGINE_REJECTED', `${dialect} engines have no sampling parameter ${name}`, {
        field: `sampling.${name}`,
      });
    }
    wire[wireName] = value;
  }
  return wire;
}

/** Sampling parameters of `/generate` of SGLang for the `response_format` of a completion. @throws ENGINE_REJECTED */
export function toGrammar(format: unknown): Record<string, string> {
  if (format === undefined || format === null) return {};
  const { type, json_schema: json } = format as { type?: unknown; json_schema?: { schema?: unknown } };
  if (type === 'text') return {};
  if (type === 'json_object') return { json_schema: '{"type":"object"}' };
  if (type === 'json_schema') return { json_schema: JSON.stringify(json?.schema ?? {}) };
  if (type === 'structural_tag') return { structural_tag: JSON.stringify(format) };
  const message = `response_format: SGLang has no type ${JSON.stringify(type)}`;
  throw new BroomwagonError('ENGINE_REJECTED', message, { field: 'response_format' });
}
