import type { ENGINE_PRESETS, EngineParameters } from './engine-parameters';

export type EnginePresetName = keyof typeof ENGINE_PRESETS;

/** Time of one decode step: tau = t0 + cb * X + ck * K, X the batch or the graph tier that holds it. Seconds. */
export function stepSeconds(parameters: EngineParameters, batch: number, kvTokens: number): number {
  const tier = parameters.graphTiers?.find((size) => size >= batch) ?? batch;
  return (
    parameters.stepBaseSeconds + parameters.stepPerSequenceSeconds * tier + parameters.stepPerKvTokenSeconds * kvTokens
  );
}

/** Seconds of decode steps of a fixed batch, as a fluid: a step takes `first` seconds at the start, and `growth` more with each step. */
export function secondsOfSteps(steps: number, first: number, growth: number): number {
  return steps * first + (growth * steps * steps) / 2;
}

/** Inverse of {@link secondsOfSteps}, in the form that stays exact for growth = 0. */
export function stepsInSeconds(seconds: number, first: number, growth: number): number {
  return (2 * seconds) / (first + Math.sqrt(first * first + 2 * growth * seconds));
}
