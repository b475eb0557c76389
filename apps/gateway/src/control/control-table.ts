import type { EngineDialect } from '@broomwagon/contracts';

/** A call of engines that a trainer makes at the gateway, and that the gateway makes at every engine of the pool. */
export interface ControlCall {
  method: 'GET' | 'POST';
  /** Path, at the gateway and at the engine. */
  path: string;
  dialects: readonly EngineDialect[];
  /** `pause`: no leases are granted from the start of the call on. `resume`: leases are granted again after it. */
  pool?: 'pause' | 'resume';
  /** Path of the call that ends the pause. */
  undoneBy?: string;
  /** The pause has no deadline, because the load-balancer cannot make the call that ends it. */
  hasNoDeadline?: boolean;
  /** Field of the body with the version of new weights. */
  version?: 'weight_version' | 'new_version';
  /** An engine that refuses the new weights keeps its old weights as a whole. */
  isAtomic?: boolean;
  /** Fields added to the body for engines of a dialect unless the trainer has sent them. */
  defaults?: Partial<Record<EngineDialect, Record<string, unknown>>>;
  /** The engines wait for each other in this call, so that all engines are called at the same time. */
  isCollective?: boolean;
  /** The engines join a group of processes; each engine gets its own first rank. */
  ranks?: RankFields;
}

/** Fields of a call by which an engine joins a group of processes. */
export interface RankFields {
  /** Object of the body with the ranks; absent: the body. */
  parent?: string;
  /** Name of the field with the first rank of the engine. */
  offset: string;
  /** Name of the field with the number of ranks of the group, ranks before the first engine included. */
  total: string;
}

const SGLANG = ['sglang'] as const;
const VLLM = ['vllm'] as const;
const GROUP: RankFields = { offset: 'rank_offset', total: 'world_size' };
/**
 * SGLang ends all its requests by default. The gateway has already cut the requests that must not see the new version.
 */
const KEEPS_RUNNING: ControlCall['defaults'] = { sglang: { abort_all_requests: false } };
const WEIGHTS = { version: 'weight_version' } as const;

type Options = Omit<ControlCall, 'method' | 'path' | 'dialects'>;

function post(dialects: ControlCall['dialects'], options: Options, ...paths: string[]): ControlCall[] {
  return paths.map((path) => ({ method: 'POST', path, dialects, ...options }));
}

function get(dialects: ControlCall['dialects'], ...paths: string[]): ControlCall[] {
  return paths.map((path) => ({ method: 'GET', path, dialects }));
}

export const CONTROL_CALLS: readonly ControlCall[] = [
  // SGLang
  ...post(SGLANG, { pool: 'pause', undoneBy: '/continue_generation' }, '/pause_generation'),
  ...post(SGLANG, { pool: 'resume' }, '/continue_generation'),
  ...get(SGLANG, '/flush_cache', '/get_weight_version'),
  ...post(SGLANG, {}, '/flush_cache', '/destroy_weights_update_group', '/post_process_weights', '/weights_checker'),
  ...post(SGLANG, {}, '/release_memory_occupation', '/resume_memory_occupation', '/load_lora_adapter_from_tensors'),
  ...post(SGLANG, {}, '/pull_weights', '/begin_weight_update', '/end_weight_update'),
  // SGLang rolls back a failed load from the disk, but no other failed load.
  ...post(SGLANG, { ...WEIGHTS, isAtomic: true }, '/update_weights_from_disk'),
  ...post(SGLANG, WEIGHTS, '/update_weights_from_tensor'),
  ...post(SGLANG, { ...WEIGHTS, isCollective: true }, '/update_weights_from_distributed'),
  ...post(SGLANG, { isCollective: true, ranks: GROUP }, '/init_weights_update_group'),
  ...post(SGLANG, { isCollective: true }, '/load_lora_adapter_from_distributed'),
  // SGLang and vLLM
  ...post(
    [...SGLANG, ...VLLM],
    { version: 'new_version', isAtomic: true, defaults: KEEPS_RUNNING },
    '/update_weight_version',
  ),
  ...post([...SGLANG, ...VLLM], {}, '/load_lora_adapter', '/unload_lora_adapter'),
  // vLLM, SkyRL and prime-rl
  ...post(VLLM, { pool: 'pause', undoneBy: '/resume' }, '/pause'),
  ...post(VLLM, { pool: 'resume' }, '/resume'),
  ...get(VLLM, '/is_paused', '/is_sleeping', '/get_world_size', '/weight_info'),
  ...post(VLLM, {}, '/sleep', '/wake_up', '/reset_prefix_cache', '/start_weight_update', '/fetch_weights'),
  ...post(VLLM, {}, '/v1/load_lora_adapter', '/v1/unload_lora_adapter', '/skyrl/v1/load_lora_adapter'),
  ...post(VLLM, { isCollective: true }, '/collective_rpc'),
  ...post(VLLM, { ...WEIGHTS, isCollective: true }, '/update_weights', '/finish_weight_update'),
  ...post(VLLM, { isCollective: true, ranks: { ...GROUP, parent: 'init_info' } }, '/init_weight_transfer_engine'),
  ...post(
    VLLM,
    { isCollective: true, ranks: { offset: 'rank_offset', total: 'inference_world_size' } },
    '/init_broadcaster',
  ),
  // AReaL on vLLM
  ...post(
    VLLM,
    { pool: 'pause', undoneBy: '/areal_continue_generation', hasNoDeadline: true },
    '/areal_pause_generation',
  ),
  ...post(VLLM, { pool: 'resume' }, '/areal_continue_generation'),
  ...post(VLLM, WEIGHTS, '/areal_update_weights', '/areal_update_weights_lora'),
  ...post(VLLM, { ...WEIGHTS, isCollective: true }, '/areal_update_weights_xccl', '/areal_update_weights_lora_xccl'),
  ...post(VLLM, {}, '/areal_set_update_weight_meta', '/areal_set_update_weight_meta_lora'),
  ...post(VLLM, { isCollective: true, ranks: GROUP }, '/areal_init_weights_update_group'),
];
