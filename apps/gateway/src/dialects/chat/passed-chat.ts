import { declaredFields, findPassed, knownFields } from '../passed/passed-request';
import { MAX_LOGPROBS, OPENAI_FIELDS, PASSED_SAMPLING } from '../vllm/passed-completion';
import { UNCONTINUED } from '../vllm/vllm-sampling';

/** Fields answered with values of one call. `input_ids` replace the rendered messages (SGLang). */
const PASSED = ['input_ids', 'return_meta_info', 'return_prompt_text', 'return_prompt_token_ids'];
const KNOWN = knownFields(
  [...declaredFields('/v1/chat/completions'), ...UNCONTINUED, 'program_id', ...OPENAI_FIELDS],
  [...PASSED_SAMPLING, ...PASSED],
);

/** The field because of which a chat is passed on; undefined: the gateway reads the chat. */
export function findPassedChat(body: Record<string, unknown>): string | undefined {
  const { top_logprobs: alternatives, ...fields } = body;
  const isBeyond = typeof alternatives === 'number' && (alternatives > MAX_LOGPROBS || alternatives < 0);
  return isBeyond ? 'top_logprobs' : findPassed(fields, KNOWN);
}
