import { ENGINE_FEATURES, type EngineCapabilities } from '@broomwagon/contracts';

/** Features that the engine is known to lack, separated by commas; undefined when its capabilities are unknown. */
export function missingFeatures(capabilities: EngineCapabilities | undefined): string | undefined {
  return capabilities && ENGINE_FEATURES.filter((feature) => capabilities[feature] === false).join(',');
}
