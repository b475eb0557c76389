import type { Generation } from '../generations/generation';

/** Where a reader is: tokens before it, and characters of their text. */
export interface Position {
  tokens: number;
  characters: number;
}

export const BEGIN: Position = { tokens: 0, characters: 0 };

/** How a dialect writes answers. */
export interface Format {
  /** A chunk of a stream with the tokens of a choice after a position. */
  chunk(generation: Generation, from: Position, index: number): object;
  /** The answer with all choices; default: that of {@link chunk} from the beginning. */
  whole?(generations: Generation[]): object;
  /** The last event of a stream that has ended without an error. */
  trailer?(generations: Generation[]): object | undefined;
  /** Each chunk has all tokens so far. */
  isCumulative?: boolean;
}
