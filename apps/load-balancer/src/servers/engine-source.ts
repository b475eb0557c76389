/** An engine that a source lists. */
export interface FoundEngine {
  /** Base URL. */
  url: string;
  /** The engine is terminating: it gets no new calls, and its running calls must end within this time. */
  drainMs?: number;
}

/** Lists engines. Engines that register themselves (`server.register`) need no source. */
export interface EngineSource {
  /** Each engine once. @throws when the source cannot be read; what was found before stays registered */
  engines(signal: AbortSignal): Promise<FoundEngine[]>;
}
