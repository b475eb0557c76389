import { BroomwagonError, type EngineDialect } from '@broomwagon/contracts';

type Lists = Record<string, readonly string[]>;

const names = (text: string): string[] => text.trim().split(/\s+/);

// Fields that the request models of engines declare, as of August 2026. Engines ignore any other field in silence.
// vLLM: entrypoints/openai/{completion,chat_completion}/protocol.py, sampling_params.py,
// entrypoints/scale_out/token_in_token_out/protocol.py.
// SGLang: srt/entrypoints/openai/protocol.py, srt/managers/io_struct.py (GenerateReqInput),
// srt/sampling/sampling_params.py.

const VLLM_SHARED = names(`
  model frequency_penalty logit_bias logprobs max_tokens n presence_penalty seed stop stream stream_options temperature
  top_p user use_beam_search top_k min_p repetition_penalty watermarking length_penalty stop_token_ids
  include_stop_str_in_output ignore_eos min_tokens skip_special_tokens spaces_between_special_tokens
  truncate_prompt_tokens truncation_side allowed_token_ids prompt_logprobs logprob_token_ids bad_words echo
  add_special_tokens response_format structured_outputs priority request_id session_id return_tokens_as_token_ids
  return_token_ids routed_experts_prompt_start return_token_offsets return_mm_kwargs cache_salt kv_transfer_params
  ec_transfer_params vllm_xargs repetition_detection thinking_token_budget stream_interval`);

const SGLANG_SHARED = names(`
  model frequency_penalty logit_bias logprobs max_tokens n presence_penalty seed stop stream stream_options temperature
  top_p user return_hidden_states return_routed_experts routed_experts_start_len return_cached_tokens_details
  return_token_ids top_k min_p min_tokens regex ebnf repetition_penalty stop_token_ids stop_regex no_stop_trim
  ignore_eos
  skip_special_tokens lora_path session_id session_params response_format custom_params custom_logit_processor
  images_config bootstrap_host bootstrap_port bootstrap_room routed_dp_rank disagg_prefill_dp_rank data_parallel_rank
  rid
  extra_key cache_salt ngram_corpus_id priority`);

/** Fields of requests by the path of the route. */
export const REQUEST_FIELDS: Partial<Record<EngineDialect, Lists>> = {
  vllm: {
    '/v1/completions': [...VLLM_SHARED, 'prompt', 'suffix', 'prompt_embeds'],
    '/v1/chat/completions': [
      ...VLLM_SHARED,
      ...names(`
        messages top_logprobs max_completion_tokens tools tool_choice reasoning_effort include_reasoning
        parallel_tool_calls add_generation_prompt continue_final_message documents chat_template chat_template_kwargs
        media_io_kwargs mm_processor_kwargs return_prompt_text`),
    ],
    '/inference/v1/generate': names(`
      request_id token_ids token_offsets features content_parts sampling_params model reasoning_ended
      reasoning_parser_kwargs return_token_ids output_mode stream stream_options cache_salt priority kv_transfer_params
      ec_transfer_params`),
  },
  sglang: {
    '/v1/completions': [...SGLANG_SHARED, ...names('prompt best_of echo suffix json_schema custom_labels')],
    '/v1/chat/completions': [
      ...SGLANG_SHARED,
      ...names(`
        messages top_logprobs max_completion_tokens tools tool_choice parallel_tool_calls return_prompt_token_ids
        return_meta_info reasoning_effort task continue_final_message separate_reasoning stream_reasoning
        chat_template_kwargs max_dynamic_patch min_dynamic_patch use_audio_in_video input_ids`),
    ],
    '/generate': names(`
      rid session_id text input_ids input_embeds image_data video_data audio_data mm_hashes mm_content_hashes
      use_audio_in_video video_config sampling_params return_logprob logprob_start_len top_logprobs_num
      token_ids_logprob
      return_sampling_mask return_text_in_logprobs return_flat_raw_top_logprobs return_flat_raw_top_logprobs_b64 stream
      log_metrics return_hidden_states return_routed_experts routed_experts_start_len return_indexer_topk modalities
      session_params lora_path lora_id custom_logit_processor positional_embed_overrides bootstrap_host bootstrap_port
      bootstrap_room bootstrap_pair_key decode_tp_size routed_dp_rank data_parallel_rank disagg_prefill_dp_rank
      kv_router_hint routing_key conversation_id background require_reasoning max_thinking_tokens priority extra_key
      no_logs custom_labels return_bytes return_entropy return_prompt_token_ids external_trace_header received_time
      max_dynamic_patch min_dynamic_patch image_max_dynamic_patch video_max_dynamic_patch images_config
      multi_item_delimiter_indices cache_salt`),
  },
};

/** Fields of `sampling_params`: of `/inference/v1/generate` on vLLM, of `/generate` on SGLang. */
export const SAMPLING_FIELDS: Partial<Record<EngineDialect, readonly string[]>> = {
  vllm: names(`
    n presence_penalty frequency_penalty repetition_penalty temperature top_p top_k min_p seed stop stop_token_ids
    ignore_eos max_tokens min_tokens logprobs prompt_logprobs prompt_logprob_token_ids prompt_logprob_start
    logprob_token_ids flat_logprobs detokenize skip_special_tokens spaces_between_special_tokens
    include_stop_str_in_output stream_interval structured_outputs logit_bias allowed_token_ids extra_args bad_words
    skip_reading_prefix_cache thinking_token_budget repetition_detection routed_experts_prompt_start
    trace_decode_token_ids`),
  sglang: names(`
    max_new_tokens stop stop_token_ids stop_regex temperature top_p top_k min_p frequency_penalty presence_penalty
    repetition_penalty min_new_tokens n json_schema regex ebnf structural_tag ignore_eos skip_special_tokens
    spaces_between_special_tokens no_stop_trim custom_params stream_interval logit_bias sampling_seed`),
};

const OLDER_VLLM = names(
  'best_of guided_json guided_regex guided_choice guided_grammar guided_decoding_backend guided_whitespace_pattern',
);

/** Fields that change nothing of an answer, or that the gateway itself reads: an engine may ignore them. */
const WITHOUT_EFFECT = new Set(
  names(`user metadata store log_metrics no_logs custom_labels routing_key conversation_id external_trace_header
    received_time routed_dp_rank data_parallel_rank stream_reasoning return_text_in_logprobs return_routed_experts
    routed_experts_start_len return_tokens_as_token_ids return_token_offsets return_mm_kwargs sampling_params`),
);

/** Fields that engines take for true if they are absent. */
const TRUE_BY_DEFAULT = new Set(
  names(`add_special_tokens include_reasoning add_generation_prompt separate_reasoning skip_special_tokens
    spaces_between_special_tokens parallel_tool_calls`),
);

const DECLARED = new Map(
  Object.entries(REQUEST_FIELDS).map(([dialect, routes]) => [
    dialect as EngineDialect,
    new Set([
      ...Object.values(routes).flat(),
      ...(SAMPLING_FIELDS[dialect as EngineDialect] ?? []),
      ...(dialect === 'vllm' ? OLDER_VLLM : []),
    ]),
  ]),
);

/**
 * Refuses a field that only engines of another dialect take: this engine would ignore it in silence. Fields that no
 * dialect declares are passed on: a newer engine may take them.
 * @param parent path of the object that has the fields, with a dot
 * @throws BroomwagonError ENGINE_REJECTED with the field
 */
export function refuseForeignFields(dialect: EngineDialect, fields: Record<string, unknown>, parent = ''): void {
  const own = DECLARED.get(dialect);
  if (own === undefined) return;
  for (const [name, value] of Object.entries(fields)) {
    if (own.has(name) || WITHOUT_EFFECT.has(name) || !isGiven(name, value)) continue;
    const owners = [...DECLARED].filter(([, declared]) => declared.has(name)).map(([owner]) => owner);
    if (owners.length === 0) continue;
    const field = `${parent}${name}`;
    const hint = name === 'lora_path' ? `; name the adapter ${JSON.stringify(value)} in the field model instead` : '';
    const takers = owners.join(' and ');
    const message = `${field}: engines of ${dialect} do not take this field, only those of ${takers}${hint}`;
    throw new BroomwagonError('ENGINE_REJECTED', message, { field });
  }
}

function isGiven(name: string, value: unknown): boolean {
  if (TRUE_BY_DEFAULT.has(name)) return value === false;
  if (typeof value === 'object' && value !== null) return Object.keys(value).length > 0;
  return Boolean(value);
}
