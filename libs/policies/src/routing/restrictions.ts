import type { EngineFeature } from '@broomwagon/contracts';
import type { RoutingServer } from './policies/policy';

/** Requirements of an acquire on its server. */
export interface Restrictions {
  weightVersion?: number;
  minWeightVersion?: number;
  maxWeightLag?: number;
  excludeServers?: readonly string[];
  labels?: Readonly<Record<string, string>>;
  needs?: readonly EngineFeature[];
  model?: string;
}

/** @param newestWeightVersion newest version of the servers that take leases */
export function fits(
  server: Pick<RoutingServer, 'serverId' | 'weightVersion' | 'labels' | 'lacks' | 'models' | 'lacksModel'>,
  request: Restrictions,
  newestWeightVersion: number,
): boolean {
  const { weightVersion, minWeightVersion = 0, maxWeightLag = Infinity, excludeServers = [], labels = {} } = request;
  const { needs = [], model } = request;
  return (
    (weightVersion === undefined || server.weightVersion === weightVersion) &&
    server.weightVersion >= minWeightVersion &&
    newestWeightVersion - server.weightVersion <= maxWeightLag &&
    !excludeServers.includes(server.serverId) &&
    Object.entries(labels).every(([name, value]) => server.labels?.[name] === value) &&
    !needs.some((feature) => server.lacks?.includes(feature)) &&
    (model === undefined || (server.lacksModel !== true && listsModel(server.models, model)))
  );
}

/**
 * @param models names that the engine lists, with `*` if it has more; undefined: not known, so it may have any
 * @param model name of a model or an adapter; SGLang names an adapter `<model>:<adapter>`
 */
export function listsModel(models: readonly string[] | undefined, model: string): boolean {
  const [, adapter] = /^[^:]*:([^]+)$/.exec(model) ?? [];
  return models === undefined || [model, '*', adapter].some((name) => name !== undefined && models.includes(name));
}

/**
 * Restriction to servers that list the model of an acquire: `nothing` while all lists are equal, since then the engine
 * decides; `unknown`: no server of the pool lists it.
 */
export function modelConstraint(
  lists: readonly (readonly string[] | undefined)[],
  model: string,
): 'nothing' | 'model' | 'unknown' {
  if (new Set(lists.map((models) => models?.join('\n'))).size <= 1) return 'nothing';
  return lists.some((models) => listsModel(models, model)) ? 'model' : 'unknown';
}

/** Lane of acquires with these restrictions: `*` for none, `@<n>` for one exact weight version. */
export function buildLaneKey(request: Restrictions): string {
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
