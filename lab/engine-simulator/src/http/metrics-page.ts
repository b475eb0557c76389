import type { EngineDialect } from '@broomwagon/contracts';
import type { EngineLoad, SimulatedEngine } from '../engine/simulated-engine';

/** Tokens of a block of the KV cache, as in vLLM. */
const BLOCK_SIZE = 16;

/** Page of metrics under the engine's own names, with the simulator's metrics beside them. */
export function metricsPage(
  engine: SimulatedEngine,
  load: EngineLoad,
  { dialect, model }: { dialect: EngineDialect; model: string },
): string {
  const named: [string, number][] =
    dialect === 'sglang'
      ? [
          ['sglang:num_running_reqs', load.running],
          ['sglang:num_queue_reqs', load.waiting],
          ['sglang:token_usage', load.kvUse],
          ['sglang:generation_tokens_total', load.tokensMade],
        ]
      : [
          ['vllm:num_requests_running', load.running],
          ['vllm:num_requests_waiting', load.waiting],
          ['vllm:kv_cache_usage_perc', load.kvUse],
          ['vllm:num_preemptions_total', load.preemptions],
          ['vllm:generation_tokens_total', load.tokensMade],
        ];
  const own: [string, number][] = [
    ['engine_simulator_busy_seconds_total', load.busySeconds],
    ['engine_simulator_idle_seconds_total', load.idleSeconds],
    ['engine_simulator_simulated_seconds_total', load.simulatedSeconds],
    ['engine_simulator_clock_lag_share', load.clockLagShare],
  ];
  const blocks = Math.floor(load.kvTokens / BLOCK_SIZE);
  const cache = `vllm:cache_config_info{block_size="${BLOCK_SIZE}",num_gpu_blocks="${blocks}"} 1\n`;
  const lines = [...named, ...own].map(
    ([name, value]) =>
      `# TYPE ${name} ${name.endsWith('_total') ? 'counter' : 'gauge'}\n${name}{model_name="${model}"} ${value}`,
  );
  return `${lines.join('\n')}\n${dialect === 'sglang' ? '' : cache}process_start_time_seconds ${engine.startedAtSeconds}\n`;
}
