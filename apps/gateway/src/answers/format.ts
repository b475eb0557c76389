import type { BroomwagonError } from '@broomwagon/contracts';
import type { Generation } from '../core/generation';
import type { MessagePosition } from '../core/message-log';

/** Part of a response that a reader has. */
export interface Position {
  tokens: number;
  characters: number;
  /** Parts of the message, for a chat. */
  message?: MessagePosition;
}

export const BEGIN: Position = { tokens: 0, characters: 0 };

/** Writes answers in the form of a dialect. */
export interface Format {
  /** A chunk of a stream with the tokens of a choice after a position; each item of a list is written as one event. */
  chunk(generation: Generation, from: Position, index: number): object;
  /** Returns a function that writes chunks as JSON while the choice runs, with less work than {@link chunk}. */
  running?(generation: Generation, index: number): (from: Position) => string;
  /** The answer with all choices; default: a chunk from the beginning. */
  whole?(generations: Generation[]): object;
  /** The last event of a stream that has ended without an error. */
  trailer?(generations: Generation[]): object | undefined;
  /** The last event of a stream that has ended with an error; default: as in the API of OpenAI. */
  failure?(error: BroomwagonError): object;
  /** Each event is named by its `type`, and there is no `[DONE]`. */
  hasNamedEvents?: boolean;
  /** Each chunk has all tokens so far. */
  isCumulative?: boolean;
}
