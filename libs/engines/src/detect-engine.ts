import { BroomwagonError, ENGINE_DIALECTS, isBroomwagonError, type EngineDialect } from '@broomwagon/contracts';
import { OpenAiAdapter } from './dialects/openai.adapter';
import { SglangAdapter } from './dialects/sglang.adapter';
import { VllmAdapter } from './dialects/vllm.adapter';
import type { EngineAdapter, EngineAdapterOptions, EngineDescription } from './engine-adapter';

const ADAPTERS = { vllm: VllmAdapter, sglang: SglangAdapter, openai: OpenAiAdapter };

/** The adapter of a known dialect; asks the engine nothing. */
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
 * Finds the dialect of the engine at a URL: vLLM, SGLang, then plain OpenAI, which the other two would pass for.
 * ENGINE_UNREACHABLE when nothing answers; ENGINE_PROTOCOL, with the answers, when it is none of the three.
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
