import type { SampleIdentities } from '../tokens/sample-identity';
import type { GenerateCall } from './generate-call';

/** Token ids of a prompt from some position on, with their log probabilities; null for the first token of a prompt. */
export interface ScoredTokens {
  tokenIds: readonly number[];
  logprobs: readonly (number | null)[];
}

/** Scores the prompt of a call; undefined for a call that does not ask for it. */
export function scorePrompt(
  identities: SampleIdentities,
  { prompt, promptLogprobsFrom: from }: GenerateCall,
): ScoredTokens | undefined {
  if (from === undefined) return undefined;
  const tokenIds = prompt.kind === 'tokenIds' ? prompt.tokenIds : identities.tokenize(prompt);
  return { tokenIds: tokenIds.slice(from), logprobs: identities.score(tokenIds).slice(from) };
}

/** Field `prompt_logprobs` of a choice of vLLM: for each token an object that has its id as the name. */
export function promptLogprobs(scored: ScoredTokens | undefined): string {
  if (scored === undefined) return '';
  const { tokenIds, logprobs } = scored;
  const entries = tokenIds.map((id, index) => {
    const logprob = logprobs[index]!;
    return logprob === null ? null : { [id]: { logprob, rank: 1, decoded_token: null } };
  });
  return `,"prompt_logprobs":${JSON.stringify(entries)}`;
}

/** Field of `meta_info` of SGLang, whose first entry is always null, as nothing before it was read. */
export function inputTokenLogprobs(scored: ScoredTokens | undefined): string {
  if (scored === undefined) return '';
  const { tokenIds, logprobs } = scored;
  const entries = tokenIds.map((id, index) => [index === 0 ? null : logprobs[index]!, id, null]);
  return `,"input_token_logprobs":${JSON.stringify(entries)}`;
}
