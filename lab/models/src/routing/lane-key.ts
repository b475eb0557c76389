import type { EngineFeature } from '@broomwagon/contracts';
import { meets } from './listed-models';
import type { ModelRegistration } from './routing-model.types';
import type { ModelAcquire } from './waiting-lanes';

/** Lane of acquires with these restrictions: `*` for none, `@<n>` for one exact weight version. */
export function buildLaneKey(request: ModelAcquire): string {
  const excluded = (request.excludeServers ?? []).toSorted();
  const labels = Object.entries(request.labels ?? {}).sort(([one], [other]) => (one < other ? -1 : 1));
  const needs = (request.needs ?? []).toSorted();
  const { weightVersion, minWeightVersion, maxWeightLag, model } = request;
  const others =
    [minWeightVersion, maxWeightLag].some((one) => one !== undefined) ||
    excluded.length ||
    labels.length ||
    needs.length ||
    model !== undefined;
  if (!others) return weightVersion === undefined ? '*' : `@${weightVersion}`;
  return `@${JSON.stringify([weightVersion, minWeightVersion, maxWeightLag, excluded, labels, needs, model])}`;
}

/** Whether a server may serve the waiters of the lane. */
export function servesLane(server: ModelRegistration, lane: string, newestWeightVersion: number): boolean {
  if (!lane.startsWith('@[')) return [server.serverId, '*', `@${server.weightVersion}`].includes(lane);
  const [weightVersion, minWeightVersion, maxWeightLag, excludeServers, labels, needs, model] = JSON.parse(
    lane.slice(1),
  ) as [number | null, number | null, number | null, string[], [string, string][], EngineFeature[], string | null];
  const request = {
    weightVersion: weightVersion ?? undefined,
    minWeightVersion: minWeightVersion ?? undefined,
    maxWeightLag: maxWeightLag ?? undefined,
    excludeServers,
    labels: Object.fromEntries(labels),
    needs,
    model: model ?? undefined,
  };
  return meets(server, request, newestWeightVersion);
}
