import { ENGINE_FEATURES, type EngineCapabilities } from '@broomwagon/contracts';

/** The features that an engine is known not to have, commas between; undefined when nothing is known of it. */
export function missingFeatures(capabilities: EngineCapabilities | undefined): string | undefined {
  return capabilities && ENGINE_FEATURES.filter((feature) => capabilities[feature] === false).join(',');
}
