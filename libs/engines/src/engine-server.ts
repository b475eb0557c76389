import type { RegisterServerRequest, ServerId } from '@broomwagon/contracts';
import { detectEngine } from './detect-engine';
import type { EngineAdapterOptions } from './engine-adapter';

/** instanceId of an engine that reports none: registering it again then changes nothing. */
const UNKNOWN_START = 'unknown';

/** `http://host:8000` is server `host-8000`. @throws TypeError for what is no URL */
export function serverIdOf(url: string): ServerId {
  const { host, pathname } = new URL(url);
  return `${host}${pathname}`.replaceAll(/[^A-Za-z0-9.]+/g, '-').replaceAll(/^-+|-+$/g, '');
}

/** The registration of the engine at a URL, as the engine describes itself. @throws as {@link detectEngine} */
export async function registrationOf(
  url: string,
  options: EngineAdapterOptions & { signal?: AbortSignal },
): Promise<Omit<RegisterServerRequest, 'maxInflight'>> {
  const { adapter, model, instanceId, weightVersion, capabilities } = await detectEngine(url, options);
  return {
    serverId: serverIdOf(url),
    endpoint: adapter.url,
    dialect: adapter.dialect,
    model,
    instanceId: instanceId ?? UNKNOWN_START,
    weightVersion,
    capabilities,
  };
}
