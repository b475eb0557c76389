import { fits, type Restrictions } from '@broomwagon/policies';
import type { ModelRegistration } from './routing-model.types';

/**
 * @param models names that the engine lists, with `*` if it has more; undefined: not known, so it may have any
 * @param model name of a model or an adapter; SGLang names an adapter `<model>:<adapter>`
 */
function listsModel(models: readonly string[] | undefined, model: string): boolean {
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

/** Whether the engine of the server is known not to have the model of an acquire. */
export function lacksModel({ models }: Pick<ModelRegistration, 'models'>, model: string | undefined): true | undefined {
  return model !== undefined && !listsModel(models, model) ? true : undefined;
}

/**
 * Whether a server meets the constraints of an acquire.
 * @param newestWeightVersion newest version of the servers that take leases
 */
export function meets(server: ModelRegistration, acquire: Restrictions, newestWeightVersion: number): boolean {
  return fits({ ...server, lacksModel: lacksModel(server, acquire.model) }, acquire, newestWeightVersion);
}
