import { REPLACEMENT, type TokenIncrement } from '@broomwagon/engines';
import { NumberLog } from './number-log';
import { StopTexts } from './stop-texts';
import { TextLog } from './text-log';

/** Maximum tokens of one character: a token for each byte. */
const MAX_CHARACTER_TOKENS = 4;

/**
 * Tokens of a response as its calls bring them. The stop text that ends a response ({@link TokenIncrement.matchedStop})
 * is removed here, because it may begin in one call and end in another.
 */
export class TokenBuffer {
  count = 0;
  /** The stop text that was found across the end of a call. */
  matched: string | undefined;
  /** How the last call continued the tokens of earlier calls, if there were any tokens. */
  resumedBy: 'tokens' | 'text' | undefined;
  private readonly ids = new NumberLog(Int32Array);
  /** Engines compute log probabilities in 32 bits. */
  private readonly logprobs = new NumberLog(Float32Array);
  private readonly texts = new TextLog();
  private readonly stops: StopTexts;
  private isEnded = false;
  /** Tokens whose text may not have arrived: the start of a character. */
  private readonly held: TokenIncrement[] = [];
  private heldTokens = 0;
  /** Length of the text where the last call ended. */
  private cutAt = 0;
  /** Characters at the end of the text with which a stop text may begin. */
  private openLength = 0;

  /**
   * @param stops texts that end the response
   * @param keepsStop the text contains the stop text that ended it
   */
  constructor(
    stops: readonly string[],
    private readonly keepsStop: boolean,
  ) {
    this.stops = new StopTexts(stops);
  }

  /** Takes tokens of a call. @returns true if a stop text that began in an earlier call ends the response */
  take(increment: TokenIncrement): boolean {
    if (this.matched !== undefined) return true;
    const { text, tokenIds, tokenCount, choice, isLast, matchedStop } = increment;
    const hasIds = (tokenIds?.length ?? 0) > 0;
    // Before an incomplete character, SGLang sends the text only up to its last space.
    const mayLack = text === '' || text.endsWith(REPLACEMENT) || (hasIds && text.endsWith(' '));
    const isWhole = !mayLack || choice?.delta?.tool_calls !== undefined;
    if (!isWhole && !isLast && this.heldTokens + tokenCount < MAX_CHARACTER_TOKENS) {
      this.held.push(increment);
      this.heldTokens += tokenCount;
      return false;
    }
    this.release();
    this.append(increment);
    // The end is set before the stream ends: tokens that are saved meanwhile must not be continued.
    if (isLast) this.isEnded = true;
    const isAcross = this.findAcross(matchedStop);
    if (!isAcross && matchedStop !== undefined && !this.keepsStop) this.removeStop(matchedStop);
    this.updateOpen();
    return isAcross;
  }

  /** Ends the response with its present tokens, held tokens included. */
  complete(): void {
    this.release();
    this.isEnded = true;
    this.updateOpen();
  }

  /** Whether the response is complete: a further call would begin behind the end of the response. */
  get isComplete(): boolean {
    return this.isEnded || this.matched !== undefined;
  }

  /** Takes the tokens of earlier calls, before the first call. */
  restore(made: TokenIncrement): void {
    this.release();
    this.append(made);
    this.cut();
  }

  /** Ends a call early. Held tokens are generated again: a continued text never begins within a character. */
  cut(): void {
    this.drop();
    this.cutAt = this.texts.length;
    this.updateOpen();
  }

  /** Removes all tokens: the response begins again. */
  clear(): void {
    this.drop();
    this.isEnded = false;
    this.ids.clear();
    this.logprobs.clear();
    this.texts.cutAt(0);
    this.count = 0;
    this.cutAt = 0;
    this.updateOpen();
  }

  get text(): string {
    return this.texts.from(0);
  }

  /** Number of characters before the end of the text that may begin a stop text. */
  get textLength(): number {
    return this.texts.length - this.openLength;
  }

  /** The text from a character on, without the end that may begin a stop text. */
  textFrom(start: number): string {
    const text = this.texts.from(start);
    return this.openLength === 0 ? text : text.slice(0, -this.openLength);
  }

  /** The end of the text that may begin a stop text. */
  get openText(): string {
    return this.texts.from(this.textLength);
  }

  /** Token ids; undefined if the engine has not sent the ids of all tokens. */
  idsFrom(start: number): number[] | undefined {
    return this.ids.length === this.count ? this.ids.from(start) : undefined;
  }

  /** Log probabilities, NaN for a token without one; undefined if the engine has sent none. */
  logprobsFrom(start: number): number[] | undefined {
    if (this.logprobs.length === 0 && this.count > 0) return undefined;
    const list = this.logprobs.from(start);
    while (list.length < this.count - start) list.push(Number.NaN);
    return list;
  }

  /** The engine has sent the ids of all tokens. */
  get hasIds(): boolean {
    return this.count > 0 && this.ids.length === this.count;
  }

  get allIds(): number[] | undefined {
    return this.idsFrom(0);
  }

  get allLogprobs(): number[] | undefined {
    return this.logprobsFrom(0);
  }

  /** Adds tokens that are not held any more. */
  protected append({ tokenIds, logprobs, text, tokenCount }: TokenIncrement): void {
    for (const id of tokenIds ?? []) this.ids.push(id);
    if (logprobs !== undefined && tokenCount > 0) {
      while (this.logprobs.length < this.count) this.logprobs.push(null);
      const isWhole = logprobs.length === tokenCount;
      for (let index = 0; index < tokenCount; index++) this.logprobs.push(isWhole ? logprobs[index]! : null);
    }
    this.texts.append(text);
    this.count += tokenCount;
  }

  /** Called with the end of the text that was removed because it belongs to a stop text. */
  protected onRemoved(_text: string): void {
    // Only subclasses that hand out parts of the text need the removed text.
  }

  /** Called with the number of characters at the end of the text that may be the beginning of a stop text. */
  protected onOpen(_length: number): void {
    // Only subclasses that hand out parts of the text need the length.
  }

  private release(): void {
    if (this.held.length === 0) return;
    for (const increment of this.held) this.append(increment);
    this.drop();
  }

  private drop(): void {
    this.held.length = 0;
    this.heldTokens = 0;
  }

  private updateOpen(): void {
    if (this.stops.maxLength === 0) return;
    const isOpen = !this.isComplete && !this.keepsStop;
    const from = Math.max(0, this.texts.length - this.stops.maxLength + 1);
    this.openLength = isOpen ? this.stops.openLength(this.texts.from(from)) : 0;
    this.onOpen(this.openLength);
  }

  /** @param own stop text that ended the call on the engine: at the same character the first in the request wins */
  private findAcross(own: string | undefined): boolean {
    if (this.cutAt === 0) return false;
    const { maxLength } = this.stops;
    const start = Math.max(0, this.cutAt - maxLength + 1);
    const found = this.stops.findAcross(this.texts.from(start), this.cutAt, start);
    if (found === undefined) {
      // Later text belongs to this call only.
      if (this.texts.length >= this.cutAt + maxLength) this.cutAt = 0;
      return false;
    }
    const isAtEnd = found.at + found.stop.length === this.texts.length;
    if (isAtEnd && own !== undefined && this.stops.isBefore(own, found.stop)) return false;
    this.matched = found.stop;
    this.removeFrom(found.at + (this.keepsStop ? found.stop.length : 0));
    return true;
  }

  private removeStop(stop: string): void {
    const end = this.texts.from(Math.max(0, this.texts.length - stop.length));
    this.removeFrom(this.texts.length - this.stops.matchedLength(end, stop));
  }

  private removeFrom(length: number): void {
    const removed = this.texts.from(length);
    if (removed === '') return;
    this.texts.cutAt(length);
    this.onRemoved(removed);
  }
}
