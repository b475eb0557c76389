import type { RegisterServerRequest } from '@broomwagon/contracts';
import { toServerId } from './base-url';
import { detectEngine } from './detect-engine';
import type { EngineAdapterOptions } from './engine-adapter';

/** instanceId of an engine that reports none: registering it again then changes nothing. */
const UNKNOWN_START = 'unknown';

/** The registration of the engine at a URL, as the engine describes itself. @throws as {@link detectEngine} */
export async function readRegistration(
  url: string,
  options: EngineAdapterOptions & { signal?: AbortSignal },
): Promise<Omit<RegisterServerRequest, 'maxInflight'>> {
  const { adapter, model, instanceId, weightVersion, capabilities } = await detectEngine(url, options);
  return {
    serverId: toServerId(url),
    endpoint: adapter.url,
    dialect: adapter.dialect,
    model,
    instanceId: instanceId ?? UNKNOWN_START,
    weightVersion,
    capabilities,
  };
}
