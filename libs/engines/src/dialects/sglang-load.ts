import type { EngineLoad } from '../engine-adapter';
import type { EngineHttp } from '../http/engine-http';
import { readMetrics } from './prometheus';

interface RankLoad {
  num_running_reqs?: number;
  num_waiting_reqs?: number;
  /** Only in older versions: running and waiting requests together. */
  num_reqs?: number;
  /** Only in newer versions. */
  num_waiting_uncached_tokens?: number;
  token_usage?: number;
  max_total_num_tokens?: number;
}

/** The load of all ranks of an SGLang, by the route that the version has, else by its metrics. */
export async function readSglangLoad(http: EngineHttp): Promise<EngineLoad | undefined> {
  const answer = (await http.getJson('/v1/loads?include=core')) ?? (await http.getJson('/get_load'));
  const ranks = (Array.isArray(answer) ? answer : answer?.loads) as RankLoad[] | undefined;
  if (Array.isArray(ranks) && ranks.length > 0) {
    const waiting = sum(ranks, (rank) => rank.num_waiting_reqs ?? 0);
    const running = sum(ranks, (rank) => rank.num_running_reqs ?? (rank.num_reqs ?? 0) - (rank.num_waiting_reqs ?? 0));
    const uses = ranks.flatMap((rank) => rank.token_usage ?? []);
    const saysUncached = ranks.some((rank) => rank.num_waiting_uncached_tokens !== undefined);
    return {
      running,
      waiting,
      kvUse: uses.length === 0 ? undefined : Math.max(...uses),
      kvTokens: sum(ranks, (rank) => rank.max_total_num_tokens ?? 0) || undefined,
      uncachedTokens: saysUncached ? sum(ranks, (rank) => rank.num_waiting_uncached_tokens ?? 0) : undefined,
    };
  }
  const metrics = readMetrics((await http.getText('/metrics')) ?? '');
  const running = metrics.get('sglang:num_running_reqs')?.sum;
  if (running === undefined) return undefined;
  return {
    running,
    waiting: metrics.get('sglang:num_queue_reqs')?.sum ?? 0,
    kvUse: metrics.get('sglang:token_usage')?.max,
  };
}

function sum(ranks: RankLoad[], value: (rank: RankLoad) => number): number {
  return ranks.reduce((total, rank) => total + value(rank), 0);
}
