import type { Generation } from './generation';
import type { SavedMessage } from './message-log';
import type { RestoredTokens } from './response-parts';
import type { NamedTokens } from './token-names';

/** Where a save has ended. */
interface Place {
  tokens: number;
  characters: number;
  /** Characters of each text of a chat. */
  texts: Record<string, number>;
  /** Number of log probabilities of a chat. */
  entries: number;
}

/** Tokens as they are saved. */
export interface Partial extends RestoredTokens {
  /** SHA-256 of the body. */
  digest: string;
  /** Id of the first save, which the later ones of the same response have too. */
  chain?: string;
  /** Place after which the save begins; absent in the first save, which has all tokens. */
  after?: Place;
}

/** Most saves that are added to a first one. */
const MAX_PIECES = 1_000;

/** The saves of one response. The first save has all tokens, and each later save only new tokens. */
export class SavedPieces {
  private place: Place | undefined;
  private chain = '';
  private pieces = 0;

  constructor(private readonly generation: Generation) {}

  /** The next save has all tokens: an earlier one may be lost. */
  beginAgain(): void {
    this.place = undefined;
  }

  /** The next save. Saves are sent in the order of these calls. */
  next(): { partial: Partial; piece?: number } {
    const after = this.pieces < MAX_PIECES ? this.findPlace() : undefined;
    const { tokens } = this.generation;
    const saved = tokens.message?.saved;
    this.place = {
      tokens: tokens.count,
      characters: tokens.textLength,
      texts: Object.fromEntries(Object.entries(saved?.texts ?? {}).map(([name, text]) => [name, text.length])),
      entries: saved?.logprobs.length ?? 0,
    };
    this.pieces = after === undefined ? 0 : this.pieces + 1;
    if (after === undefined) this.chain = `${this.generation.uid} ${tokens.count}`;
    const partial = { chain: this.chain, ...buildPartial(this.generation, after) };
    return after === undefined ? { partial } : { partial, piece: this.pieces };
  }

  /** Where the next save begins; undefined: with all tokens, since some were removed. */
  private findPlace(): Place | undefined {
    const { place } = this;
    if (place === undefined) return undefined;
    const { count, textLength, message } = this.generation.tokens;
    const { texts = {}, logprobs = [] } = message?.saved ?? {};
    const isLonger = ([name, length]: [string, number]): boolean =>
      Object.hasOwn(texts, name) && texts[name]!.length >= length;
    const isKept =
      count >= place.tokens &&
      textLength >= place.characters &&
      logprobs.length >= place.entries &&
      Object.entries(place.texts).every(isLonger);
    return isKept ? place : undefined;
  }
}

/** @param after absent: all tokens */
export function buildPartial(generation: Generation, after?: Place): Partial {
  const { tokens, repeat, report } = generation;
  const { spans, isVersionReported, promptTokens } = report;
  const { message, names } = tokens;
  const start = after?.tokens ?? 0;
  return {
    digest: repeat!.digest,
    after,
    tokenIds: tokens.idsFrom(start),
    text: tokens.textFrom(after?.characters ?? 0) + tokens.openText,
    logprobs: tokens.logprobsFrom(start),
    promptTokens,
    spans,
    isVersionReported,
    message: message && cutMessage(message.saved, after),
    names: names?.from(start),
  };
}

/** Joins the saves of a response. A save that does not begin where the earlier saves end is left out. */
export function joinPieces(first: Partial, pieces: readonly Partial[]): Partial {
  const joined = { ...first };
  for (const { chain, after, ...piece } of pieces) {
    if (chain === undefined || chain !== first.chain || after?.tokens !== joined.tokenIds?.length) continue;
    Object.assign(joined, piece, {
      tokenIds: join(joined.tokenIds, piece.tokenIds),
      text: joined.text.slice(0, after!.characters) + piece.text,
      logprobs: join(joined.logprobs, piece.logprobs),
      message: piece.message && joinMessage(joined.message, piece.message, after!),
      names: piece.names && joinNames(joined.names, piece.names),
    });
  }
  return joined;
}

function getTextLength({ texts }: Place, name: string): number {
  return Object.hasOwn(texts, name) ? texts[name]! : 0;
}

function cutMessage(message: SavedMessage, after?: Place): SavedMessage {
  if (after === undefined) return message;
  const texts = Object.entries(message.texts).map(([name, text]) => [name, text.slice(getTextLength(after, name))]);
  return { ...message, texts: Object.fromEntries(texts), logprobs: message.logprobs.slice(after.entries) };
}

function joinMessage(before: SavedMessage | undefined, message: SavedMessage, after: Place): SavedMessage {
  const known = before?.texts ?? {};
  const texts = Object.entries(message.texts).map(([name, text]) => {
    const start = Object.hasOwn(known, name) ? known[name]! : '';
    return [name, start.slice(0, getTextLength(after, name)) + text];
  });
  return { ...message, texts: Object.fromEntries(texts), logprobs: join(before?.logprobs, message.logprobs)! };
}

function joinNames(before: NamedTokens | undefined, names: NamedTokens): NamedTokens {
  return {
    tokens: join(before?.tokens, names.tokens)!,
    top_logprobs: join(before?.top_logprobs, names.top_logprobs)!,
    text_offset: join(before?.text_offset, names.text_offset)!,
  };
}

function join<Item>(before: Item[] | undefined, list: Item[] | undefined): Item[] | undefined {
  return list && [...(before ?? []), ...list];
}
