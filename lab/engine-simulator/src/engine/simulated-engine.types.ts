import type { EngineParameters } from '@broomwagon/models';
import type { LengthSource } from '../tokens/length-source';
import type { SampleIdentity } from '../tokens/sample-identity';
import type { KvStore } from './kv-store';
import type { LockstepGroup } from './lockstep-group';

export type FinishReason = 'stop' | 'length' | 'abort';

/** Receiver of a request's tokens. Positions count from the start of the response, earlier attempts included. */
export interface TokenSink {
  tokens(from: number, to: number): void;
  end(reason: FinishReason): void;
}

export interface EngineRequest {
  /** Names by which the request can be aborted. */
  names: string[];
  identity: SampleIdentity;
  /** Most tokens that this attempt may generate. */
  budget: number;
  /** Least tokens that this attempt generates. */
  minTokens: number;
  /** Number of tokens of this attempt after which the engine stands still until the request is aborted; default: never. */
  standsAt?: number;
  /** Salt of the prefix cache: prompts cached under other salts are not found. */
  cacheSalt?: string;
  /** Session that uses the prompt in the prefix cache. */
  sessionId?: string;
  /** Tokens of one event after the first; absent: as many as there are. */
  streamInterval?: number;
}

export interface SimulatedEngineOptions {
  serverId: string;
  parameters: EngineParameters;
  lengths: LengthSource;
  speed: number;
  tickMs: number;
  /** Milliseconds between two chunks of a stream; the last chunk is sent at once. */
  streamMs: number;
  maxModelTokens: number;
  /** Number of processes of the engine; default 1. */
  ranks?: number;
  /** Group with which the engine decodes in lockstep. */
  lockstep?: LockstepGroup;
  /** Store for the caches of requests that leave the engine. */
  kvStore?: KvStore;
  /** Whether the prefix cache counts the sessions that use its prompts. */
  sessionCache?: boolean;
  now: () => number;
}

/** A row of the table of requests. */
export interface RequestRow {
  id: string;
  state: 'waiting' | 'running' | FinishReason;
  promptKey: string;
  /** Tokens of the whole response: so far, and at its end if nothing cuts it. */
  made: number;
  total: number;
  /** Tokens of one event after the first; 1: as many as there are. */
  streamInterval: number;
  /** Names of the weights when the request arrived, and now or when it left; null: no name. */
  weightVersions: [string | null, string | null];
}

/** A request in the engine. */
export interface Live extends EngineRequest {
  key: string;
  sink: TokenSink;
  /** Tokens that this attempt generates unless it is aborted. */
  target: number;
  sentTokens: number;
  sentAtMs: number;
  /** Name of the weights when the request arrived. */
  cameWith: string | null;
}
