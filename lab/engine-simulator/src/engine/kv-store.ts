import type { SampleIdentity } from '../tokens/sample-identity';

/** Speed at which engines read from a KV store. */
export interface KvStoreOptions {
  bytesPerToken: number;
  bytesPerSecond: number;
  /** Fixed time per request, seconds. */
  setupSeconds: number;
}

/** Most samples whose caches are kept. */
const MAX_SAMPLES = 65_536;

/**
 * A store outside the engines that keeps the KV caches of requests that leave them: any engine of the store continues
 * such a request without computing its context again.
 */
export class KvStore {
  private readonly tokens = new Map<string, number>();

  constructor(readonly options: KvStoreOptions) {}

  put(identity: SampleIdentity, tokens: number): void {
    const name = buildSampleKey(identity);
    this.tokens.delete(name);
    this.tokens.set(name, tokens);
    if (this.tokens.size > MAX_SAMPLES) this.tokens.delete(this.tokens.keys().next().value!);
  }

  /** Tokens of the context that are in the store, and the seconds to read their cache. */
  read(identity: SampleIdentity): { tokens: number; seconds: number } {
    const context = identity.promptTokens + identity.madeTokens;
    const tokens = Math.min(this.tokens.get(buildSampleKey(identity)) ?? 0, context);
    const { bytesPerToken, bytesPerSecond, setupSeconds } = this.options;
    return { tokens, seconds: tokens === 0 ? 0 : setupSeconds + (tokens * bytesPerToken) / bytesPerSecond };
  }

  /** Drops all caches, which new weights make useless. */
  clear(): void {
    this.tokens.clear();
  }
}

function buildSampleKey({ promptKey, script }: SampleIdentity): string {
  return `${promptKey} ${script.sampleKey}`;
}
