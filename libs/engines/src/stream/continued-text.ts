import type { GenerateOptions, GenerationResult, MadeTokens, TokenIncrement } from '../engine-adapter';
import { REPLACEMENT, textAfter, withoutHalf, type Decode } from './decoded-text';

/** Tokens that show whether all ids end within a character, which has at most four. */
const END_TOKENS = 8;
/** Most tokens that are held until they end with a whole character. */
const MAX_HELD_TOKENS = 64;

/** A call that continues token ids. */
export interface ContinuedCall {
  made: MadeTokens | undefined;
  /** False: the engine may withhold text that begins a stop text. */
  sendsStops: boolean;
  decode: Decode;
}

/**
 * Runs a call that continues token ids. If these ids end within a character, the engine has sent the ids without the
 * text of the character, and a new call decodes only new ids: the text of the character would be in neither call. So
 * the first increments are held until the ids end with a whole character. The text of the held increments is then the
 * decoding of all ids, without the text of earlier calls.
 */
export async function continueText(
  { made, sendsStops, decode }: ContinuedCall,
  options: GenerateOptions,
  run: (options: GenerateOptions) => Promise<GenerationResult>,
): Promise<GenerationResult> {
  const { tokenIds, text } = made ?? {};
  if (tokenIds === undefined || text === undefined) return run(options);
  const start = new ContinuedStart({ tokenIds, text }, sendsStops, decode, options);
  const settled = start.settle();
  let result: GenerationResult | undefined;
  try {
    result = await run({ ...options, onTokens: (increment) => start.take(increment) });
    return result;
  } finally {
    start.end(result !== undefined && result.finishReason !== 'aborted');
    const added = await settled;
    if (result !== undefined && added !== undefined) result.text = added.whole + result.text.slice(added.sent.length);
  }
}

/** The first tokens of a call that continues others, held until it is known how these end. */
class ContinuedStart {
  private held: TokenIncrement[] | undefined = [];
  private state: 'running' | 'cut' | 'ended' = 'running';
  private wake: () => void = () => undefined;

  constructor(
    private readonly made: { tokenIds: number[]; text: string },
    private readonly sendsStops: boolean,
    private readonly decode: Decode,
    private readonly options: GenerateOptions,
  ) {}

  take(increment: TokenIncrement): void {
    if (this.held === undefined) return this.options.onTokens?.(increment);
    this.held.push(increment);
    this.wake();
  }

  /** The call is over; `isComplete`: the engine has ended the response. */
  end(isComplete: boolean): void {
    this.state = isComplete ? 'ended' : 'cut';
    this.wake();
  }

  /**
   * Passes the held increments on as soon as their text is known.
   * @returns the text that the engine sent and the text that replaced it; undefined if nothing was replaced
   */
  async settle(): Promise<{ sent: string; whole: string } | undefined> {
    const end = await this.decode(this.made.tokenIds.slice(-END_TOKENS));
    if (end === undefined) this.options.onUncheckedText?.();
    const found = end?.endsWith(REPLACEMENT) ? await this.findText() : undefined;
    const held = this.held ?? [];
    this.held = undefined;
    const replaced = found ? held.splice(0, found.count) : [];
    for (const [index, increment] of replaced.entries()) {
      // The last increment has the text: increments of ids without text are taken for the start of a character.
      this.options.onTokens?.({ ...increment, text: index === replaced.length - 1 ? found!.text : '' });
    }
    for (const increment of held) this.options.onTokens?.(increment);
    return found && { sent: toText(replaced), whole: found.text };
  }

  /** Text of the first `count` held increments; undefined: it stays as it was sent. */
  private async findText(): Promise<{ count: number; text: string } | undefined> {
    for (let known = 0; ;) {
      const held = this.held!.slice();
      const ids = held.flatMap(({ tokenIds = [] }) => tokenIds);
      const { state } = this;
      if (ids.length > known || (state !== 'running' && ids.length > 0)) {
        known = ids.length;
        const text = await this.read(held, ids, state);
        if (text !== undefined) return { count: held.length, text };
      }
      if (state !== 'running' || known >= MAX_HELD_TOKENS) {
        // Without tokens nothing is lost: the next call begins where this one did.
        if (known > 0) this.options.onUncheckedText?.();
        return undefined;
      }
      if (this.state === state && this.held!.length === held.length) await this.changed();
    }
  }

  /** @returns undefined: not known yet, or never */
  private async read(held: TokenIncrement[], ids: number[], state: string): Promise<string | undefined> {
    const decoded = await this.decode([...this.made.tokenIds, ...ids]);
    const whole = decoded === undefined ? undefined : textAfter(decoded, this.made.text);
    if (whole === undefined) return undefined;
    const sent = toText(held);
    if (state === 'cut') return withoutHalf(whole);
    // The engine has decoded the end of the response, too.
    if (state === 'ended') return whole.endsWith(sent) ? whole : joinOverlapping(withoutHalf(whole), sent);
    if (whole.endsWith(REPLACEMENT)) return undefined;
    // Otherwise the engine holds text back that comes with later tokens: it would be there twice.
    const isSent = whole.endsWith(sent.replace(/^\uFFFD+/, '')) && (this.sendsStops || sent !== '');
    return isSent ? whole : undefined;
  }

  private changed(): Promise<void> {
    return new Promise((resolve) => (this.wake = resolve));
  }
}

const toText = (increments: TokenIncrement[]): string => increments.map(({ text }) => text).join('');

/** Joins two texts; a part that ends the first and begins the second stands there once. */
function joinOverlapping(before: string, after: string): string {
  for (let start = Math.max(0, before.length - after.length); ; start++) {
    if (after.startsWith(before.slice(start))) return before.slice(0, start) + after;
  }
}
