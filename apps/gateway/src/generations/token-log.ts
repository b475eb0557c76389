import type { TokenIncrement } from '@broomwagon/engines';

/** Most tokens of one character: a byte each. */
const MAX_CHARACTER_TOKENS = 4;

/** The tokens of a response, over all its calls. */
export class TokenLog {
  readonly ids: number[] = [];
  readonly logprobs: number[] = [];
  text = '';
  count = 0;
  /** The stop text that was found across the end of a call. */
  matched: string | undefined;
  /** Tokens whose text has not come yet: the begin of a character. */
  private held: TokenIncrement[] = [];
  /** Length of the text where the last call ended. */
  private cutAt = 0;

  /**
   * @param stops engines look for them in the text of one call only
   * @param keepsStop the text contains the stop text that ended it
   */
  constructor(
    private readonly stops: readonly string[],
    private readonly keepsStop: boolean,
  ) {}

  /** Takes tokens of a call. @returns true if a stop text that began in an earlier call ends the response */
  take(increment: TokenIncrement): boolean {
    if (this.matched !== undefined) return true;
    this.held.push(increment);
    const heldTokens = this.held.reduce((sum, { tokenCount }) => sum + tokenCount, 0);
    if (increment.text === '' && heldTokens < MAX_CHARACTER_TOKENS) return false;
    this.release();
    return this.findStop();
  }

  /** The call was complete: nothing is held any more. */
  release(): void {
    for (const { tokenIds, logprobs, text, tokenCount } of this.held) {
      for (const id of tokenIds ?? []) this.ids.push(id);
      for (const logprob of logprobs ?? []) this.logprobs.push(logprob);
      this.text += text;
      this.count += tokenCount;
    }
    this.held = [];
  }

  /** The call ended early. What is held is generated again: a continued text never begins within a character. */
  cut(): void {
    this.held = [];
    this.cutAt = this.text.length;
  }

  /** Begins again without tokens. */
  clear(): void {
    this.cut();
    this.ids.length = 0;
    this.logprobs.length = 0;
    this.text = '';
    this.count = 0;
    this.cutAt = 0;
  }

  /** Undefined if the engine has not sent the ids of all tokens; the same for {@link allLogprobs}. */
  get allIds(): number[] | undefined {
    return this.ids.length === this.count ? this.ids : undefined;
  }

  get allLogprobs(): number[] | undefined {
    return this.logprobs.length === this.count ? this.logprobs : undefined;
  }

  private findStop(): boolean {
    if (this.cutAt === 0) return false;
    let found: { at: number; stop: string } | undefined;
    for (const stop of this.stops) {
      const from = Math.max(0, this.cutAt - stop.length + 1);
      const window = this.text.slice(from, this.cutAt + stop.length - 1);
      const at = stop === '' ? -1 : window.indexOf(stop);
      if (at >= 0 && (found === undefined || from + at < found.at)) found = { at: from + at, stop };
    }
    if (found === undefined) return false;
    this.matched = found.stop;
    this.text = this.text.slice(0, found.at + (this.keepsStop ? found.stop.length : 0));
    return true;
  }
}
