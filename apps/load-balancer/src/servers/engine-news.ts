import type { ServerStatus } from '@broomwagon/contracts';
import type { EngineReport } from '@broomwagon/state';

/** Whether the report differs from the stored state of the server. */
export function isNews(server: ServerStatus, report: EngineReport): boolean {
  const { startedAtSeconds, weightVersion, models } = report;
  const { engineStartedAtSeconds, engineWeightVersion, unconfirmedWeightVersion } = server;
  const isSameStart = startedAtSeconds !== undefined && startedAtSeconds === engineStartedAtSeconds;
  const isConfirmed =
    unconfirmedWeightVersion !== undefined && (isSameStart || weightVersion === unconfirmedWeightVersion);
  const isOtherVersion = weightVersion !== undefined && weightVersion !== engineWeightVersion;
  const hasOtherModels = models !== undefined && models.join('\n') !== server.models?.join('\n');
  return isOtherStart(server, report) || isConfirmed || isOtherVersion || hasOtherModels;
}

/** Whether the report may come from another start of the engine. The transition that stores the report decides. */
export function isOtherEngine(server: ServerStatus, report: EngineReport): boolean {
  const { models } = report;
  const hasNoKnownModel =
    models !== undefined && server.models !== undefined && !models.some((model) => server.models!.includes(model));
  return isOtherStart(server, report) || hasNoKnownModel;
}

function isOtherStart({ engineStartedAtSeconds }: ServerStatus, { startedAtSeconds }: EngineReport): boolean {
  return startedAtSeconds !== undefined && startedAtSeconds > (engineStartedAtSeconds ?? 0);
}

/**
 * Whether the report changes the weight version of the server. After a trainer has set the version, the first report
 * of the engine changes nothing.
 */
export function namesWeights(server: ServerStatus, version: number): boolean {
  const { engineWeightVersion: known, weightVersion, unconfirmedWeightVersion } = server;
  const isNamed = weightVersion > 0 || unconfirmedWeightVersion !== undefined;
  return version >= 0 && (known === undefined ? !isNamed : version !== known);
}
