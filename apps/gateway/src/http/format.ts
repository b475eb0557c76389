import type { BroomwagonError } from '@broomwagon/contracts';
import type { Generation } from '../generations/generation';
import type { MessagePosition } from '../generations/message-log';

/** Where a reader is: tokens before it, characters of their text, and of a chat the parts of the message. */
export interface Position {
  tokens: number;
  characters: number;
  message?: MessagePosition;
}

export const BEGIN: Position = { tokens: 0, characters: 0 };

/** How a dialect writes answers. */
export interface Format {
  /** A chunk of a stream with the tokens of a choice after a position; a list is written as one event for each. */
  chunk(generation: Generation, from: Position, index: number): object;
  /** JSON of chunks of a choice that has not ended, as {@link chunk} but for less work. Called once for a stream. */
  running?(generation: Generation, index: number): (from: Position) => string;
  /** The answer with all choices; default: that of {@link chunk} from the beginning. */
  whole?(generations: Generation[]): object;
  /** The last event of a stream that has ended without an error. */
  trailer?(generations: Generation[]): object | undefined;
  /** The last event of a stream that has ended with an error; default: as in the API of OpenAI. */
  failure?(error: BroomwagonError): object;
  /** Events are named by their `type`, and there is no `[DONE]`. */
  hasNamedEvents?: boolean;
  /** Each chunk has all tokens so far. */
  isCumulative?: boolean;
}
