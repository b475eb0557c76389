import type { GenerateOptions, GenerationResult, TokenIncrement } from '../engine-adapter';
import { textAfter, withoutHalf, type Decode } from './decoded-text';
import type { IncludedStop } from './included-stop';

/**
 * Whether one start of an engine sends the stop texts that it is asked to send. An engine that ignores the request
 * withholds the end of the text while it streams the ids, so that a call that is cut has ids without text. Until a
 * response has shown that the engine obeys, the text of each call that is cut is compared with the decoded ids.
 */
export class WithheldText {
  private isObeyed = false;

  constructor(private readonly decode: Decode) {}

  /**
   * Runs a call. If the call was cut or has failed, adds the text that the engine has withheld, as an increment without
   * tokens, before the end of the call.
   */
  async complete(
    stop: IncludedStop | undefined,
    options: GenerateOptions,
    run: (options: GenerateOptions) => Promise<GenerationResult>,
  ): Promise<GenerationResult> {
    const watched = this.watch(stop);
    if (watched === undefined) return run(options);
    const { onTokens, onUncheckedText } = options;
    const take = (increment: TokenIncrement): void => {
      watched.take(increment);
      onTokens?.(increment);
    };
    let result: GenerationResult | undefined;
    try {
      result = await run({ ...options, onTokens: take });
      if (result.finishReason !== 'aborted') watched.finish(result);
      return result;
    } finally {
      const missing = result === undefined || result.finishReason === 'aborted' ? await watched.findMissing() : '';
      if (missing === undefined) onUncheckedText?.();
      else if (missing !== '') {
        onTokens?.({ text: missing, tokenIds: [], tokenCount: 0 });
        if (result !== undefined) result.text += missing;
      }
    }
  }

  /** Whether the engine withholds no text of a call with these stop texts. */
  sends(stop: IncludedStop | undefined): boolean {
    return this.isObeyed || !stop?.stops.some(({ length }) => length > 1);
  }

  /** @returns undefined if nothing of this call can be withheld */
  watch(stop: IncludedStop | undefined): WatchedText | undefined {
    if (stop === undefined || this.sends(stop)) return undefined;
    return new WatchedText(stop.stops, this.decode, () => (this.isObeyed = true));
  }
}

export class WatchedText {
  private readonly tokenIds: number[] = [];
  private text = '';
  private hasIds = true;

  constructor(
    private readonly stops: readonly string[],
    private readonly decode: Decode,
    private readonly onObeyed: () => void,
  ) {}

  take({ tokenIds = [], text, tokenCount }: TokenIncrement): void {
    this.hasIds &&= tokenIds.length === tokenCount;
    for (const id of tokenIds) this.tokenIds.push(id);
    this.text += text;
  }

  /** Takes the end of the response: a stop text in the response shows that the engine obeys. */
  finish({ stopReason }: Pick<GenerationResult, 'stopReason'>): void {
    const stop = typeof stopReason === 'string' && this.stops.includes(stopReason) ? stopReason : undefined;
    if (stop !== undefined && this.text.endsWith(stop)) this.onObeyed();
  }

  /**
   * Finds the text that is missing at the end of a call that was cut.
   * @returns undefined if the engine does not report the text
   */
  async findMissing(): Promise<string | undefined> {
    // Without ids no text is missing: the next text begins behind this text.
    if (this.tokenIds.length === 0 || !this.hasIds) return '';
    const decoded = await this.decode(this.tokenIds).catch(() => undefined);
    if (decoded === undefined) return undefined;
    const missing = textAfter(decoded, this.text);
    if (missing === '') this.onObeyed();
    // The call that continues the ids completes the character.
    return missing === undefined ? undefined : withoutHalf(missing);
  }
}
