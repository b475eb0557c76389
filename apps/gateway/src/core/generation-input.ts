import type { Prompt, SamplingParameters } from '@broomwagon/contracts';
import type { PassedRequest } from '@broomwagon/engines';
import type { LeaseRequest } from '@broomwagon/generation';

/** Input of a generation, read by a dialect from a request. */
export interface GenerationInput {
  prompt: Prompt;
  sampling: SamplingParameters;
  /** Maximum tokens of the whole response; Infinity: until the context is full. */
  maxTokens: number;
  /** Whether the text of a response that ended by a stop text contains the stop text. */
  keepsStop: boolean;
  /**
   * Whether the response is continued with its tokens when a call ends early; otherwise it is repeated from the start.
   */
  isContinued: boolean;
  /** The client reads texts, offsets or alternatives of tokens. */
  hasNames?: boolean;
  /** Whether routed experts are answered in the form of SkyRL. */
  packsExperts?: boolean;
  /** Whether the engine parses tool calls in the message of a chat. */
  hasTools?: boolean;
  /** Whether the response is also continued after an abort by the engine; otherwise the abort ends it. */
  continuesEngineAborts: boolean;
  /**
   * The engine gets the body unchanged, and the client gets the answer unchanged; the prompt is used only to choose a
   * server.
   */
  passed?: Omit<PassedRequest, 'engineRequestId'>;
  /** Session, group, priority and weight gates of the acquires. */
  placement: Omit<LeaseRequest, 'requestId'>;
}
