import type { BroomwagonError } from '@broomwagon/contracts';
import type { SavedMessage } from './message-log';
import type { Recording } from './recording/recording';
import type { NamedTokens } from './token-names';
import type { WeightSpan } from './weight-spans';

export type GenerationEnd =
  | { reason: 'stop'; matched?: string | number }
  | { reason: 'length' }
  | { reason: 'abort'; message: string }
  | { reason: 'error'; error: BroomwagonError };

/** An answer that is passed on as the engine has sent it. */
export interface RawAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly pieces: readonly Buffer[];
  /** False for a stream, whose pieces are written as they arrive. */
  readonly isWhole: boolean;
}

/** Tokens of an earlier generation of the same request. */
export interface RestoredTokens {
  /** Token ids; absent: the engine has sent none. Only an ended response is saved without ids. */
  tokenIds?: number[];
  text: string;
  logprobs?: number[];
  spans: readonly WeightSpan[];
  /** False: the version of a span is the version of its lease, because the engine has not reported its weights. */
  isVersionReported: boolean;
  promptTokens?: number;
  /** Ids of the rendered prompt, for a chat. */
  promptTokenIds?: number[];
  /** Message, for a chat. */
  message?: SavedMessage;
  /** Names of the tokens, if the client reads them. */
  names?: NamedTokens;
  /** Further parts of a response that has ended. */
  whole?: WholeResponse;
}

/** Parts of an ended response besides its tokens. */
export interface WholeResponse {
  end: GenerationEnd;
  tokenCount: number;
  serverId?: string;
  model?: string;
  cachedTokens?: number;
  engineFields: Readonly<Record<string, unknown>>;
  recording?: Recording;
  /** Answer of a request that is passed on; `body` is base64. */
  answer?: Omit<RawAnswer, 'pieces'> & { body: string };
}
