import { isObject } from '@broomwagon/contracts';
import { SAMPLING_FIELDS } from '@broomwagon/engines';
import { declaredFields, findPassed, knownFields } from '../passed/passed-request';

/** Fields for values that the gateway does not write, and fields of prompts that token ids alone cannot continue. */
// prettier-ignore
const PASSED = [
  'session_params', 'positional_embed_overrides', 'multi_item_delimiter_indices', 'return_flat_raw_top_logprobs',
  'return_flat_raw_top_logprobs_b64', 'return_entropy', 'return_prompt_token_ids', 'return_bytes', 'background',
  'return_indexer_topk',
];
const KNOWN = knownFields(declaredFields('/generate'), PASSED);
const KNOWN_SAMPLING = knownFields(SAMPLING_FIELDS.sglang!);

/** The field because of which a request of `/generate` is passed on; undefined: the gateway reads the request. */
export function findPassedGenerate(body: Record<string, unknown>): string | undefined {
  const { input_embeds: embeds, input_ids: ids, text, sampling_params: sampling, ...fields } = body;
  if (embeds !== undefined && embeds !== null && (ids ?? text ?? undefined) === undefined) return 'input_embeds';
  const found = findPassed(fields, KNOWN);
  if (found !== undefined) return found;
  for (const parameters of Array.isArray(sampling) ? sampling : [sampling]) {
    if (!isObject(parameters)) continue;
    // The request asks only for scores of the prompt.
    if (parameters.max_new_tokens === 0) return 'sampling_params.max_new_tokens';
    const parameter = findPassed(parameters, KNOWN_SAMPLING);
    if (parameter !== undefined) return `sampling_params.${parameter}`;
  }
  return undefined;
}
