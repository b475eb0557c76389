/** An engine that a source names. */
export interface FoundEngine {
  /** Base URL. */
  url: string;
  /** It is about to end: it is given no more calls, and those it has must be over in this time. */
  drainMs?: number;
}

/** Names the engines there are. Registration by the engines themselves (`server.register`) needs none. */
export interface EngineSource {
  /** Each engine once. @throws when the source cannot be read; what was found before stays registered */
  engines(signal: AbortSignal): Promise<FoundEngine[]>;
}
