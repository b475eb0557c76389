/** An engine that a source lists. */
export interface FoundEngine {
  /** Identity: the uid of its pod. Absent: the id of its server. */
  identity?: string;
  /** Base URL. */
  url: string;
  /** The source lists it, but not as ready: it gets no new calls. */
  isNotReady?: true;
  /** The engine is terminating: it gets no new calls, and its running calls must end within this time. */
  drainMs?: number;
}

/** Lists engines. Engines that register themselves (`server.register`) need no source. */
export interface EngineSource {
  /** Lists all engines, each once. @throws when the source cannot be read: servers stay as they are then */
  engines(signal: AbortSignal): Promise<FoundEngine[]>;
  /** Calls the listener whenever the source learns of a change by itself. */
  whenChanged?(listener: () => void): void;
}
