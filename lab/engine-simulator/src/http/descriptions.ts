import type { EngineDialect } from '@broomwagon/contracts';
import type { EngineLoad, SimulatedEngine } from '../engine/simulated-engine';

/** Properties of an engine that its descriptions report. */
export interface Described {
  model: string;
  dialect: EngineDialect;
  /** SGLang: whether chunks repeat all tokens so far. */
  cumulative: boolean;
  hasReasoning: boolean;
}

/** Body of `/v1/models`. */
export function modelList(engine: SimulatedEngine, { model, dialect }: Described) {
  const card = { id: model, object: 'model', owned_by: dialect };
  const limit = dialect === 'openai' ? {} : { max_model_len: engine.maxModelTokens };
  return { object: 'list', data: [{ ...card, ...limit }] };
}

/** Body of `/server_info` of SGLang. */
export function sglangInfo(engine: SimulatedEngine, { model, cumulative, hasReasoning }: Described) {
  return {
    model_path: model,
    served_model_name: model,
    version: '0.5.6',
    context_length: engine.maxModelTokens,
    incremental_streaming_output: !cumulative,
    instance_id: engine.instanceId,
    tp_size: engine.options.ranks ?? 1,
    enable_session_radix_cache: engine.options.sessionCache === true,
    // Default of SGLang: its chat route takes parameters from generation_config.json of the model.
    sampling_defaults: 'model',
    reasoning_parser: hasReasoning ? 'simulated' : null,
    internal_states: [],
  };
}

/** Entry of one rank in the loads of SGLang. */
export function sglangLoad({ running, waiting, kvUse, kvTokens }: EngineLoad) {
  return {
    dp_rank: 0,
    num_running_reqs: running,
    num_waiting_reqs: waiting,
    max_total_num_tokens: kvTokens,
    token_usage: kvUse,
  };
}
