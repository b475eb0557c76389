import type { ENGINE_PRESETS, EngineParameters } from './engine-parameters';

export type EnginePresetName = keyof typeof ENGINE_PRESETS;

/** Time of one decode step: tau = t0 + cb * X + ck * K, X the batch or the graph tier that holds it. Seconds. */
export function stepSeconds(parameters: EngineParameters, batch: number, kvTokens: number): number {
  const tier = parameters.graphTiers?.find((size) => size >= batch) ?? batch;
  return (
    parameters.stepBaseSeconds + parameters.stepPerSequenceSeconds * tier + parameters.stepPerKvTokenSeconds * kvTokens
  );
}
