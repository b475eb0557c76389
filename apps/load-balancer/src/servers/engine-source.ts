/** Names the engines there are. Registration by the engines themselves (`server.register`) needs none. */
export interface EngineSource {
  /** Base URLs, each once. @throws when the source cannot be read; what was found before stays registered */
  engineUrls(signal: AbortSignal): Promise<string[]>;
}
