import { isObject, LIMITS } from '@broomwagon/contracts';
import type { GenerationResult, PassedAnswer } from '@broomwagon/engines';
import { isCount } from '../fields/read-fields';

const MAX_TOKEN_ID = 2 ** 31 - 1;
/** Maximum size of a parsed answer, bytes: the parse of a larger answer would hold up all other streams. */
const MAX_PARSED_BYTES = 16 * 1_048_576;

type Fields = Record<string, unknown>;

/** Values that the gateway takes from an answer that it passes on. */
export interface PassedResult extends Pick<GenerationResult, 'usage' | 'engineFields'> {
  /** Tokens of all choices. */
  tokenCount: number;
  finishReason: 'stop' | 'length' | 'aborted';
  /** Token ids of an answer with one choice, if the answer has them. */
  tokenIds?: number[];
  logprobs?: number[];
  text: string;
  promptTokenIds?: number[];
}

/** Reads counts, ids and finish reason of an answer, if they are in a form of vLLM, SGLang or OpenAI. */
export function readAnswer({ contentType, body }: Pick<PassedAnswer, 'contentType' | 'body'>): PassedResult {
  const answer = contentType.includes('json') && body.length <= MAX_PARSED_BYTES ? parse(body) : undefined;
  const list = Array.isArray(answer) ? answer : isObject(answer) ? (answer.choices ?? [answer]) : [];
  const choices = (Array.isArray(list) ? list : []).filter(isObject).map(readChoice);
  const usage = isObject(answer) ? parseUsage(answer) : undefined;
  const tokenCount = usage?.completionTokens ?? choices.reduce((sum, { count }) => sum + count, 0);
  const reasons = new Set(choices.map(({ reason }) => reason));
  const finishReason = ['abort', 'length'].find((one) => reasons.has(one));
  const result: PassedResult = {
    tokenCount,
    text: '',
    usage: usage ?? choices[0]?.usage,
    engineFields: toVersionFields(answer, choices),
    finishReason: finishReason === 'abort' ? 'aborted' : finishReason === 'length' ? 'length' : 'stop',
  };
  const [only] = choices;
  if (choices.length !== 1 || only!.tokenIds?.length !== tokenCount) return result;
  const { tokenIds, logprobs, text } = only!;
  const promptTokenIds = ids((answer as Fields).prompt_token_ids) ?? only!.promptTokenIds;
  return { ...result, tokenIds, text, promptTokenIds, ...(logprobs?.length === tokenCount && { logprobs }) };
}

function readChoice(choice: Fields) {
  const meta = isObject(choice.meta_info) ? choice.meta_info : {};
  // Entries of SGLang: log probability, id, text.
  const entries = Array.isArray(meta.output_token_logprobs) ? (meta.output_token_logprobs as unknown[][]) : undefined;
  const { content, token_logprobs: values } = isObject(choice.logprobs) ? choice.logprobs : {};
  const ofContent = Array.isArray(content) ? content.map((one: Fields | null) => one?.logprob) : undefined;
  const tokenIds = ids(choice.token_ids) ?? ids(choice.output_ids) ?? ids(entries?.map((entry) => entry[1]));
  const reason = choice.finish_reason ?? meta.finish_reason;
  const promptTokens = meta.prompt_tokens;
  const count = tokenIds?.length ?? meta.completion_tokens;
  return {
    tokenIds,
    logprobs: numbers(ofContent) ?? numbers(values) ?? numbers(entries?.map((entry) => entry[0])),
    promptTokenIds: ids(choice.prompt_token_ids),
    text: typeof choice.text === 'string' ? choice.text : '',
    reason: isObject(reason) ? reason.type : reason,
    count: isCount(count, 0, LIMITS.maxTokens) ? (count as number) : 0,
    versions: choice.weight_versions ?? meta.weight_versions,
    version: choice.weight_version ?? meta.weight_version,
    usage: isCount(promptTokens, 0, LIMITS.maxTokens)
      ? { promptTokens: promptTokens as number, completionTokens: 0 }
      : undefined,
  };
}

function parseUsage({ usage }: Fields): GenerationResult['usage'] {
  if (!isObject(usage)) return undefined;
  const { prompt_tokens: prompt = 0, completion_tokens: completion } = usage;
  const isValid = isCount(prompt, 0, LIMITS.maxTokens) && isCount(completion, 0, Number.MAX_SAFE_INTEGER);
  return isValid ? { promptTokens: prompt as number, completionTokens: completion as number } : undefined;
}

/** Weights of the tokens, under the names that the gateway reads. */
function toVersionFields(answer: unknown, choices: { versions: unknown; version: unknown }[]): Fields {
  const { weight_version: ofAnswer } = isObject(answer) ? answer : {};
  const version = choices[0]?.version ?? ofAnswer;
  const versions = choices[0]?.versions;
  return {
    ...(versions !== undefined && { weight_versions: versions }),
    ...(version !== undefined && { weight_version: version }),
  };
}

function ids(value: unknown): number[] | undefined {
  return Array.isArray(value) && value.every((id) => isCount(id, 0, MAX_TOKEN_ID)) ? (value as number[]) : undefined;
}

function numbers(value: unknown): number[] | undefined {
  return Array.isArray(value) && value.every(Number.isFinite) ? (value as number[]) : undefined;
}

function parse(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
}
