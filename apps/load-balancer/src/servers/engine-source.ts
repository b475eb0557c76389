/** An engine that a source lists. */
export interface FoundEngine {
  /** The uid of the pod of the engine; absent: the id of its server is the identity. */
  identity?: string;
  /** Base URL. */
  url: string;
  /** The engine is listed as not ready: it gets no new calls. */
  isNotReady?: true;
  /** Time in which running calls must end, because the engine is terminating, milliseconds. It gets no new calls. */
  drainMs?: number;
}

/** Lists engines. Engines that register themselves (`server.register`) need no source. */
export interface EngineSource {
  /** Lists all engines, each once. @throws when the source cannot be read: then no server is changed */
  engines(signal: AbortSignal): Promise<FoundEngine[]>;
  /** Calls the listener whenever the source learns of a change by itself. */
  whenChanged?(listener: () => void): void;
}
