import { isObject } from '@broomwagon/contracts';
import type { SamplingForm } from '../../answers/session-sampling';
import { findPassed, knownFields } from '../passed/passed-request';
import { SAMPLING_NAMES, UNCONTINUED } from './vllm-sampling';

/**
 * Fields that `/inference/v1/generate` and `/v1/completions` have: engines continue a response on `/v1/completions`.
 */
// prettier-ignore
const READ = knownFields(
  [
    'request_id', 'token_ids', 'sampling_params', 'stream', 'stream_options', 'session_id', 'model', 'priority',
    'cache_salt', 'kv_transfer_params', 'return_routed_experts', 'routed_experts_start_len',
  ],
  // The default of these fields means the same as their absence.
  ['return_token_ids', 'features', 'content_parts'],
);
/** Fields of `sampling_params` that are read. The answer has no text that `detokenize` could leave out. */
// prettier-ignore
const READ_SAMPLING = knownFields([
  ...Object.keys(SAMPLING_NAMES),
  ...UNCONTINUED,
  'max_tokens', 'ignore_eos', 'skip_special_tokens', 'spaces_between_special_tokens', 'include_stop_str_in_output',
  'logit_bias', 'allowed_token_ids', 'detokenize',
]);

/** Where requests of `/inference/v1/generate` have sampling parameters. */
export const TOKENS_SAMPLING: SamplingForm = { parent: 'sampling_params' };

/**
 * Values of `RequestOutputKind` of vLLM that change nothing: streamed answers are `DELTA`, whole answers `FINAL_ONLY`.
 */
const DELTA = 1;
const FINAL_ONLY = 2;

/**
 * The field because of which a request of `/inference/v1/generate` is passed on; undefined: the gateway reads the
 * request.
 */
function findPassedToken(body: Record<string, unknown>): string | undefined {
  const { output_mode: mode, sampling_params: sampling, ...fields } = body;
  if ((mode ?? 'tokens') !== 'tokens') return 'output_mode';
  const found = findPassed(fields, READ);
  if (found !== undefined || !isObject(sampling)) return found;
  const { n, logprobs, output_kind: kind, ...parameters } = sampling;
  const ourKind = body.stream === true ? DELTA : FINAL_ONLY;
  if ((kind ?? ourKind) !== ourKind) return 'sampling_params.output_kind';
  if ((n ?? 1) !== 1) return 'sampling_params.n';
  if (![0, 1].includes((logprobs ?? 0) as number)) return 'sampling_params.logprobs';
  const parameter = findPassed(parameters, READ_SAMPLING);
  return parameter && `sampling_params.${parameter}`;
}

/**
 * Route by which a request of `/inference/v1/generate` is passed on.
 * @param paths routes of engines that take the request
 */
export function tokensRoute(body: Record<string, unknown>, paths: readonly string[]) {
  return { paths, reason: findPassedToken(body), prompt: body.token_ids, idField: 'request_id' as const };
}
