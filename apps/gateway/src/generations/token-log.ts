import type { TokenIncrement } from '@broomwagon/engines';
import type { MessageLog } from './message-log';
import { NumberLog } from './number-log';
import { TextLog } from './text-log';
import type { TokenNames } from './token-names';

/** Most tokens of one character: a byte each. */
const MAX_CHARACTER_TOKENS = 4;

/** The tokens of a response, over all its calls. */
export class TokenLog {
  private readonly ids = new NumberLog(Int32Array);
  /** Engines compute log probabilities in 32 bits. */
  private readonly logprobs = new NumberLog(Float32Array);
  private readonly texts = new TextLog();
  count = 0;
  /** The stop text that was found across the end of a call. */
  matched: string | undefined;
  private isEnded = false;
  /** Tokens whose text has not come yet: the start of a character. */
  private readonly held: TokenIncrement[] = [];
  private heldTokens = 0;
  /** Length of the text where the last call ended. */
  private cutAt = 0;

  /**
   * @param stops engines look for them in the text of one call only
   * @param keepsStop the text contains the stop text that ended it
   * @param message of a chat: the parts of its text
   * @param names if the client reads them
   */
  constructor(
    private readonly stops: readonly string[],
    private readonly keepsStop: boolean,
    readonly message?: MessageLog,
    readonly names?: TokenNames,
  ) {}

  /** Takes tokens of a call. @returns true if a stop text that began in an earlier call ends the response */
  take(increment: TokenIncrement): boolean {
    if (this.matched !== undefined) return true;
    this.held.push(increment);
    this.heldTokens += increment.tokenCount;
    const isVisible = increment.text !== '' || increment.choice?.delta?.tool_calls !== undefined;
    if (!isVisible && !increment.isLast && this.heldTokens < MAX_CHARACTER_TOKENS) return false;
    this.release();
    // Before the stream ends: tokens that are saved meanwhile would be continued behind the end of the response.
    if (increment.isLast) this.isEnded = true;
    return this.findStop();
  }

  /** The engine has ended the response: nothing is held any more. */
  complete(): void {
    this.release();
    this.isEnded = true;
  }

  /** No token follows: a call with these tokens would begin behind the end of the response. */
  get isComplete(): boolean {
    return this.isEnded || this.matched !== undefined;
  }

  private release(): void {
    for (const increment of this.held) this.append(increment);
    this.drop();
  }

  private append(increment: TokenIncrement): void {
    const { tokenIds, logprobs, text, tokenCount } = increment;
    this.message?.take(increment);
    this.names?.take(increment);
    for (const id of tokenIds ?? []) this.ids.push(id);
    for (const logprob of logprobs ?? []) this.logprobs.push(logprob);
    this.texts.append(text);
    this.count += tokenCount;
  }

  private drop(): void {
    this.held.length = 0;
    this.heldTokens = 0;
  }

  /** The tokens of an earlier call, before the first one here. */
  restore(made: TokenIncrement): void {
    this.held.push(made);
    this.release();
    this.cut();
  }

  /** The call ended early. What is held is generated again: a continued text never begins within a character. */
  cut(): void {
    this.drop();
    this.cutAt = this.textLength;
  }

  /** Begins again without tokens. */
  clear(): void {
    this.cut();
    this.isEnded = false;
    this.message?.clear();
    this.names?.clear();
    this.ids.clear();
    this.logprobs.clear();
    this.texts.cutAt(0);
    this.count = 0;
    this.cutAt = 0;
  }

  /** Characters of the text. */
  get textLength(): number {
    return this.texts.length;
  }

  get text(): string {
    return this.textFrom(0);
  }

  textFrom(start: number): string {
    return this.texts.from(start);
  }

  /** Undefined if the engine has not sent the ids of all tokens; the same for {@link logprobsFrom}. */
  idsFrom(start: number): number[] | undefined {
    return this.ids.length === this.count ? this.ids.from(start) : undefined;
  }

  logprobsFrom(start: number): number[] | undefined {
    return this.logprobs.length === this.count ? this.logprobs.from(start) : undefined;
  }

  get allIds(): number[] | undefined {
    return this.idsFrom(0);
  }

  get allLogprobs(): number[] | undefined {
    return this.logprobsFrom(0);
  }

  private findStop(): boolean {
    if (this.cutAt === 0) return false;
    const longest = Math.max(0, ...this.stops.map(({ length }) => length));
    const start = Math.max(0, this.cutAt - longest + 1);
    const text = this.textFrom(start);
    let found: { at: number; stop: string } | undefined;
    for (const stop of this.stops) {
      const from = Math.max(0, this.cutAt - stop.length + 1);
      const window = text.slice(from - start, this.cutAt + stop.length - 1 - start);
      const at = stop === '' ? -1 : window.indexOf(stop);
      if (at >= 0 && (found === undefined || from + at < found.at)) found = { at: from + at, stop };
    }
    if (found === undefined) {
      // What comes later belongs to this call only.
      if (this.textLength >= this.cutAt + longest) this.cutAt = 0;
      return false;
    }
    this.matched = found.stop;
    const end = found.at + (this.keepsStop ? found.stop.length : 0);
    this.message?.cutContent(this.textLength - end);
    this.texts.cutAt(end);
    return true;
  }
}
