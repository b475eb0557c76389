import type { Prompt } from '@broomwagon/contracts';
import type { GenerationRequest } from '../engine-adapter';
import { isContextTooLong } from '../http/refusal';
import type { AttemptPlan } from '../resume';

type RunPlan = Extract<AttemptPlan, { kind: 'run' }>;

/** Finds the size of the context in the refusal of a request that is too long. */
const CONTEXT_TOKENS = /context length(?: is| of)? \(?(\d+)|max_total_tokens=(\d+)/i;
/**
 * Finds the number of prompt tokens in a refusal, if the engine has counted all tokens. Newer releases of vLLM stop at
 * the limit, and report a lower bound.
 */
const PROMPT_TOKENS =
  /(\d+) in the (?:messages|prompt)|(\d+) tokens from the input|has (\d+) input tokens|contains (\d+) input tokens/i;
/** Older versions of SGLang refuse a request that fills the context to its last token. */
const MARGIN_TOKENS = 1;
/** A continued chat is rendered without the end of its last message, which `/tokenize` adds. */
const CONTINUED_MARGIN_TOKENS = 16;

/**
 * The plan with the budget that the context of the engine leaves beside the prompt. The budget is below 1 if the prompt
 * fills the context.
 * @param refusal answer of the engine to the plan
 * @param tokenize token ids of a text or messages as the engine reads them
 * @returns undefined if the budget must not be clipped, the refusal has another reason, or the prompt has no known
 *   number of tokens
 */
export async function fitBudget(
  { clipsBudget, prompt: { engineFields } }: GenerationRequest,
  plan: RunPlan,
  { message }: Error,
  tokenize: (prompt: Prompt) => Promise<number[] | undefined>,
): Promise<RunPlan | undefined> {
  if (clipsBudget !== true || !isContextTooLong(message)) return undefined;
  const contextTokens = readNumber(CONTEXT_TOKENS, message);
  if (contextTokens === undefined) return undefined;
  const { prompt } = plan;
  const promptTokens =
    'tokenIds' in prompt
      ? prompt.tokenIds.length
      : (readNumber(PROMPT_TOKENS, message) ??
        (await tokenize({ ...toPrompt(prompt), engineFields }).catch(() => undefined))?.length);
  if (promptTokens === undefined) return undefined;
  const isContinued = 'messages' in prompt && prompt.continued;
  const left = contextTokens - promptTokens - (isContinued ? CONTINUED_MARGIN_TOKENS : MARGIN_TOKENS);
  const budget = Math.min(plan.budget - 1, left);
  return { ...plan, budget, minTokens: plan.minTokens === undefined ? undefined : Math.min(plan.minTokens, budget) };
}

function toPrompt(prompt: Exclude<RunPlan['prompt'], { tokenIds: number[] }>): Prompt {
  return 'text' in prompt ? { text: prompt.text } : { messages: prompt.messages };
}

function readNumber(pattern: RegExp, text: string): number | undefined {
  const digits = pattern.exec(text)?.slice(1).find(Boolean);
  return digits === undefined ? undefined : Number(digits);
}
