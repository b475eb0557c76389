import type { ENGINE_PRESETS, EngineParameters } from './engine-parameters';

export type EnginePresetName = keyof typeof ENGINE_PRESETS;

/** Seconds of one decode step: tau = t0 + cb * X + ck * K, where X is the batch or the graph tier that holds it. */
export function stepSeconds(parameters: EngineParameters, batch: number, kvTokens: number): number {
  const tier = parameters.graphTiers?.find((size) => size >= batch) ?? batch;
  return (
    parameters.stepBaseSeconds + parameters.stepPerSequenceSeconds * tier + parameters.stepPerKvTokenSeconds * kvTokens
  );
}

/** Seconds of decode steps of a fixed batch, in continuous time: a step takes `first`, each next one `growth` more. */
export function secondsOfSteps(steps: number, first: number, growth: number): number {
  return steps * first + (growth * steps * steps) / 2;
}

/** Inverse of {@link secondsOfSteps}, in the form that stays exact for growth = 0. */
export function stepsInSeconds(seconds: number, first: number, growth: number): number {
  return (2 * seconds) / (first + Math.sqrt(first * first + 2 * growth * seconds));
}
