import { setTimeout } from 'node:timers/promises';
import { BroomwagonError } from '@broomwagon/contracts';
import type { GenerateOptions, GenerationResult, MadeTokens, TokenIncrement } from '../engine-adapter';
import { StopSource } from '../stop-signal';
import { REPLACEMENT, textAfter, withoutHalf, type Decode } from './decoded-text';

/** Last tokens that show whether all ids end within a character, which has at most four tokens. */
const END_TOKENS = 8;
/**
 * Most times that the engine decodes for one call until its tokens end with a whole character. Tokens are not counted:
 * many of them may come during one decoding, or in one chunk.
 */
const MAX_TRIES = 64;
/** Default of {@link ContinuedCall.decodeMs}. */
const DECODE_MS = 10_000;
/** Pause before an engine that did not answer is asked again, milliseconds. */
const RETRY_MS = 100;

export interface ContinuedCall {
  made: MadeTokens | undefined;
  /** False: the engine may withhold text that begins a stop text. */
  sendsStops: boolean;
  decode: Decode;
  /** How long the engine may take to decode before the call is given up, milliseconds. */
  decodeMs?: number;
}

/**
 * Runs a call that continues token ids. If these ids end within a character, the engine has sent them without the text
 * of the character, and a new call decodes only new ids: neither call would have the text of the character. So the
 * first increments are held until the ids end with a whole character. The text of the held increments is then the
 * decoding of all ids, without the text of earlier calls. If the call is cut before, its tokens are dropped, and
 * generated again.
 * @throws BroomwagonError ENGINE_BUSY if the engine decodes and does not answer in time: without its answer a part of
 *   the character would be lost
 */
export async function continueText(
  { made, sendsStops, decode, decodeMs = DECODE_MS }: ContinuedCall,
  options: GenerateOptions,
  run: (options: GenerateOptions) => Promise<GenerationResult>,
): Promise<GenerationResult> {
  const { tokenIds, text } = made ?? {};
  if (tokenIds === undefined || text === undefined) return run(options);
  const { signal } = options;
  const stop = new StopSource();
  const onAbort = (): void => stop.abort();
  signal?.addEventListener('abort', onAbort);
  if (signal?.aborted) onAbort();
  const start = new ContinuedStart({ tokenIds, text }, sendsStops, { decode, decodeMs }, options);
  const settled = start.settle().then((change) => {
    if (change === 'late') stop.abort();
    return change;
  });
  let result: GenerationResult | undefined;
  let change: Change;
  try {
    result = await run({ ...options, signal: stop, onTokens: (increment) => start.take(increment) });
  } finally {
    signal?.removeEventListener('abort', onAbort);
    start.end(result !== undefined && result.finishReason !== 'aborted');
    change = await settled;
  }
  if (change === 'late') {
    throw new BroomwagonError('ENGINE_BUSY', `The engine did not decode token ids within ${decodeMs} ms`);
  }
  applyChange(result, change);
  return result;
}

/**
 * Change of the first tokens of a call: another text, or no tokens at all, since the call was cut or the engine was
 * late to decode; undefined: none.
 */
type Change = { sent: string; whole: string } | 'dropped' | 'late' | undefined;

function applyChange(result: GenerationResult, change: Change): void {
  if (typeof change === 'string')
    Object.assign(result, { tokenIds: undefined, text: '', tokenCount: 0, logprobs: undefined });
  else if (change !== undefined) result.text = change.whole + result.text.slice(change.sent.length);
}

/** Holds the first tokens of a call, until it is known how the made tokens end. */
class ContinuedStart {
  private held: TokenIncrement[] | undefined = [];
  private state: 'running' | 'cut' | 'ended' = 'running';
  /** The engine did not decode in time: no token of the call is passed on. */
  private isLate = false;
  private wake: () => void = () => undefined;
  private readonly cut: Promise<undefined>;
  private setCut!: (value: undefined) => void;

  constructor(
    private readonly made: { tokenIds: number[]; text: string },
    private readonly sendsStops: boolean,
    private readonly decoder: { decode: Decode; decodeMs: number },
    private readonly options: GenerateOptions,
  ) {
    this.cut = new Promise((resolve) => (this.setCut = resolve));
  }

  take(increment: TokenIncrement): void {
    if (this.isLate) return;
    if (this.held === undefined) return this.options.onTokens?.(increment);
    this.held.push(increment);
    this.wake();
  }

  /** Ends the call; `isComplete`: the engine has ended the response. */
  end(isComplete: boolean): void {
    this.state = isComplete ? 'ended' : 'cut';
    if (!isComplete) this.setCut(undefined);
    this.wake();
  }

  /**
   * Passes the held increments on as soon as their text is known.
   * @returns the text that the engine sent and the text that replaced it; `dropped`, `late`: the call was cut before
   *   the text was known, or the engine was late to decode, and the tokens are generated again
   */
  async settle(): Promise<Change> {
    const end = await this.decodeInTime(this.made.tokenIds.slice(-END_TOKENS));
    const found = end?.endsWith(REPLACEMENT) ? await this.findText() : undefined;
    const held = this.held ?? [];
    this.held = undefined;
    const isUnknown = end === undefined || (end.endsWith(REPLACEMENT) && found === undefined);
    if (isUnknown && (this.state === 'cut' || this.isLate)) {
      const lost = held.reduce((sum, { tokenCount }) => sum + tokenCount, 0);
      if (lost > 0) this.options.onLost?.(lost);
      for (const { promptTokenIds, promptTokens } of held) {
        this.options.onTokens?.({ tokenIds: [], text: '', tokenCount: 0, promptTokenIds, promptTokens });
      }
      return this.state === 'cut' ? 'dropped' : 'late';
    }
    if (isUnknown) this.options.onUncheckedText?.();
    const replaced = found ? held.splice(0, found.count) : [];
    // The last increment has the text: increments of ids without text are taken for the start of a character. An engine
    // may send its end twice; the stop text is removed at the first end.
    const endAt = replaced.findIndex(({ isLast }) => isLast);
    const textAt = endAt < 0 ? replaced.length - 1 : endAt;
    for (const [index, increment] of replaced.entries()) {
      this.options.onTokens?.({ ...increment, text: index === textAt ? found!.text : '' });
    }
    for (const increment of held) this.options.onTokens?.(increment);
    return found && { sent: toText(replaced), whole: found.text };
  }

  /** Text of ids; undefined: the engine does not decode, the call was cut, or the engine is late. */
  private async decodeInTime(tokenIds: number[]): Promise<string | undefined> {
    const { decode, decodeMs } = this.decoder;
    const endsAtMs = performance.now() + decodeMs;
    for (;;) {
      if (this.state === 'cut') return undefined;
      const leftMs = endsAtMs - performance.now();
      this.isLate = leftMs <= 0;
      if (this.isLate) return undefined;
      try {
        return await Promise.race([decode(tokenIds, leftMs), this.cut]);
      } catch {
        // A killed engine stops answering a moment before its stream ends.
        await setTimeout(RETRY_MS);
      }
    }
  }

  /** Text of the first `count` held increments; undefined if the text is not known. */
  private async findText(): Promise<{ count: number; text: string } | undefined> {
    for (let known = 0, tries = 0; ;) {
      const held = this.held!.slice();
      const ids = held.flatMap(({ tokenIds = [] }) => tokenIds);
      const { state } = this;
      if (state === 'cut' || this.isLate) return undefined;
      if (ids.length > known || (state === 'ended' && ids.length > 0)) {
        known = ids.length;
        tries += 1;
        const text = await this.read(held, ids, state);
        if (text !== undefined) return { count: held.length, text };
      }
      if (state === 'ended' || tries >= MAX_TRIES) return undefined;
      if (this.state === state && this.held!.length === held.length) await this.changed();
    }
  }

  /** @returns undefined if the text is not known yet, or never will be */
  private async read(held: TokenIncrement[], ids: number[], state: 'running' | 'ended'): Promise<string | undefined> {
    const decoded = await this.decodeInTime([...this.made.tokenIds, ...ids]);
    const whole = decoded === undefined ? undefined : textAfter(decoded, this.made.text);
    if (whole === undefined) return undefined;
    const sent = toText(held);
    // The engine has decoded the end of the response, too.
    const end = held.find(({ isLast }) => isLast);
    if (state === 'ended' || end !== undefined) return toEndedText(whole, sent, end?.matchedStop);
    if (whole.endsWith(REPLACEMENT)) return undefined;
    // Otherwise the engine holds text back that comes with later tokens: this text would be there twice.
    const isSent = whole.endsWith(sent.replace(/^\uFFFD+/, '')) && (this.sendsStops || sent !== '');
    return isSent ? whole : undefined;
  }

  private changed(): Promise<void> {
    return new Promise((resolve) => (this.wake = resolve));
  }
}

const toText = (increments: TokenIncrement[]): string => increments.map(({ text }) => text).join('');

/**
 * The decoded text of a response that has ended, as far as the engine has sent it: an engine may remove its stop text
 * although the ids have it, and text behind the stop text in the same token.
 */
function toEndedText(decoded: string, sent: string, stop: string | undefined): string {
  const stopAt = stop === undefined ? -1 : decoded.lastIndexOf(stop);
  if (stopAt >= 0) return decoded.slice(0, stopAt + stop!.length);
  if (decoded.endsWith(sent)) return decoded;
  const own = sent.replace(/^\uFFFD+/, '');
  const at = own === '' ? -1 : decoded.lastIndexOf(withoutHalf(own));
  // At the end an engine may write more of a character than its decoder.
  return at < 0 ? joinOverlapping(withoutHalf(decoded), sent) : decoded.slice(0, at) + own;
}

/** Joins two texts; a part that ends the first and begins the second stands there once. */
function joinOverlapping(before: string, after: string): string {
  for (let start = Math.max(0, before.length - after.length); ; start++) {
    if (after.startsWith(before.slice(start))) return before.slice(0, start) + after;
  }
}
