import type { EngineParameters } from '@broomwagon/models';
import type { LengthSource } from '../tokens/length-source';
import type { SampleIdentity } from '../tokens/sample-identity';
import type { KvStore } from './kv-store';
import type { LockstepGroup } from './lockstep-group';

export type FinishReason = 'stop' | 'length' | 'abort';

/** Where the tokens of a request go. Positions count from the start of the response, earlier attempts included. */
export interface TokenSink {
  tokens(from: number, to: number): void;
  end(reason: FinishReason): void;
}

export interface EngineRequest {
  /** Names it can be aborted by. */
  names: string[];
  identity: SampleIdentity;
  /** Most tokens this attempt may make. */
  budget: number;
  /** Least tokens this attempt makes. */
  minTokens: number;
  /** Prompts in its cache under other salts are not found. */
  cacheSalt?: string;
}

export interface SimulatedEngineOptions {
  serverId: string;
  parameters: EngineParameters;
  lengths: LengthSource;
  speed: number;
  tickMs: number;
  /** Pause between two chunks of a stream; the last one comes at once. */
  streamMs: number;
  maxModelTokens: number;
  /** Processes of the engine; default 1. */
  ranks?: number;
  /** Engines that decode in lockstep with it. */
  lockstep?: LockstepGroup;
  /** Where it keeps the caches of requests that leave it. */
  kvStore?: KvStore;
  now: () => number;
}

/** One row of the table of requests. */
export interface RequestRow {
  id: string;
  state: 'waiting' | 'running' | FinishReason;
  promptKey: string;
  /** Tokens of the whole response so far, and those it will have if nothing cuts it. */
  made: number;
  total: number;
  /** Names of the weights when the request came, and now or when it left; null: not named. */
  weightVersions: [string | null, string | null];
}
