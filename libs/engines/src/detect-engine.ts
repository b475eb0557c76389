import {
  BroomwagonError,
  ENGINE_DIALECTS,
  isBroomwagonError,
  type EngineDialect,
  type RegisterServerRequest,
} from '@broomwagon/contracts';
import { OpenAiAdapter } from './dialects/openai.adapter';
import { SglangAdapter } from './dialects/sglang.adapter';
import { VllmAdapter } from './dialects/vllm.adapter';
import type { EngineAdapter, EngineAdapterOptions, EngineDescription } from './engine-adapter';
import { toServerId } from './base-url';

const ADAPTERS = { vllm: VllmAdapter, sglang: SglangAdapter, openai: OpenAiAdapter };

/** Creates the adapter of a known dialect, without a call of the engine. */
export function createEngineAdapter(
  dialect: EngineDialect,
  url: string,
  options?: EngineAdapterOptions,
): EngineAdapter {
  return new ADAPTERS[dialect](url, options);
}

export interface DetectedEngine extends EngineDescription {
  adapter: EngineAdapter;
}

/**
 * Finds the dialect of the engine at a URL. Plain OpenAI is tried after vLLM and SGLang, which have its routes too.
 * @throws BroomwagonError ENGINE_UNREACHABLE if nothing answers; ENGINE_PROTOCOL, with the answers, if no dialect fits
 */
export async function detectEngine(
  url: string,
  options?: EngineAdapterOptions & { signal?: AbortSignal },
): Promise<DetectedEngine> {
  const reasons: string[] = [];
  for (const dialect of ENGINE_DIALECTS) {
    const adapter = createEngineAdapter(dialect, url, options);
    try {
      return { adapter, ...(await adapter.probe(options?.signal)) };
    } catch (error) {
      if (!isBroomwagonError(error, 'ENGINE_PROTOCOL')) throw error;
      reasons.push(error.message);
    }
  }
  throw new BroomwagonError(
    'ENGINE_PROTOCOL',
    `${url} answers, but not as vLLM, SGLang or an OpenAI-compatible server: ${reasons.at(-1)}`,
    {
      details: { reasons },
    },
  );
}

/** instanceId of an engine that reports no identity of its start: a repeated registration changes nothing. */
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
