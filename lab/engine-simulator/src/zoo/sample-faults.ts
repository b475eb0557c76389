import { decode } from './zoo-run';

/** A sample as an adapter, a route of the gateway or a round returns it. */
export interface FoundSample {
  /** Text of the sample. Undefined: the caller gets ids alone. */
  text?: string;
  /** Token ids of the sample. Undefined: the engine sends no ids. */
  tokenIds?: readonly number[];
  logprobs?: readonly (number | null)[];
  /** Parts of the sample, one for each call to an engine. */
  segments?: readonly { tokenCount: number; text?: string }[];
  finishReason: string;
  /** Number of tokens of the response by its usage. */
  completionTokens?: number;
}

/** Sample of an engine without behaviours. */
export interface TrueSample {
  tokenIds: readonly number[];
  text: string;
  /** Log probabilities of all tokens. Undefined: the request asks for none. */
  logprobs?: readonly (number | null)[];
  /** Whether an engine may have no log probability of some tokens. */
  mayLackLogprobs?: boolean;
  /** Stop text of the request. */
  stop?: string;
  /** Token limit of the request. Undefined: no limit below the number of tokens. */
  maxTokens?: number;
  /** Whether an engine may hold the text of a token back until the next, and so meets a stop text a token late. */
  mayStopLate?: boolean;
  /** Whether an engine may abort the sample after any token, and report it to the caller. */
  mayAbort?: boolean;
}

/** Finds contradictions within a sample, and differences from the true sample. @returns phrases; empty: none */
export function findSampleFaults(found: FoundSample, truth: TrueSample): string[] {
  const isAborted = truth.mayAbort === true && found.finishReason === 'abort';
  const { text: wholeText, tokenCount, isCut } = limit(truth);
  const stopAt = truth.stop === undefined ? -1 : wholeText.indexOf(truth.stop);
  const faults = found.tokenIds === undefined ? [] : findTokenFaults(found, found.tokenIds, truth);
  const reason = isAborted ? 'abort' : isCut && stopAt < 0 ? 'length' : 'stop';
  if (found.finishReason !== reason) faults.push(`finish reason ${found.finishReason}`);
  const trueText = stopAt < 0 ? wholeText : wholeText.slice(0, stopAt);
  // An aborted text may end with the beginning of a stop text.
  const isTrueText = isAborted ? isBeginning(found.text, wholeText, truth.stop) : (found.text ?? trueText) === trueText;
  if (!isTrueText) faults.push(`text "${found.text}", not "${trueText}"`);
  const texts = found.segments?.map(({ text }) => text ?? '').join('');
  if (texts !== undefined && texts !== found.text) faults.push(`segments have the text "${texts}"`);
  if (found.tokenIds === undefined && found.completionTokens !== undefined) {
    const end = stopAt < 0 ? wholeText.length : stopAt + truth.stop!.length;
    const expected = countTokens(isAborted ? (found.text ?? '') : wholeText.slice(0, end));
    const extra = found.completionTokens - expected;
    const most = isAborted ? Infinity : stopAt >= 0 && truth.mayStopLate === true ? 1 : 0;
    if (!(extra >= 0 && extra <= most)) faults.push(`usage of ${found.completionTokens} tokens, not ${expected}`);
  }
  if (isAborted || found.tokenIds === undefined) return faults;
  // The last token of a response with a stop text completes the stop text.
  if (stopAt >= 0 && !decode(found.tokenIds).includes(truth.stop!)) faults.push('ids end before the stop text');
  if (stopAt < 0 && found.tokenIds.length !== tokenCount) {
    faults.push(`${found.tokenIds.length} ids, not ${tokenCount}`);
  }
  return faults;
}

/** Number of tokens whose texts begin in a text. */
const countTokens = (text: string): number => text.split(/(?= t)/).filter(Boolean).length;

function isBeginning(text = '', whole: string, stop: string | undefined): boolean {
  return whole.startsWith(text) && (stop === undefined || !text.includes(stop));
}

/** Text and number of tokens that the token limit of the request leaves. */
function limit({ text, maxTokens = Infinity }: TrueSample): { text: string; tokenCount: number; isCut: boolean } {
  const words = text === '' ? [] : text.split(/(?= t)/);
  const isCut = maxTokens <= words.length;
  return { text: words.slice(0, maxTokens).join(''), tokenCount: Math.min(maxTokens, words.length), isCut };
}

function findTokenFaults(found: FoundSample, tokenIds: readonly number[], truth: TrueSample): string[] {
  const faults: string[] = [];
  const { text = '', logprobs = [], segments, completionTokens = tokenIds.length } = found;
  if (!tokenIds.every((id, index) => id === truth.tokenIds[index])) faults.push('ids differ from the true ids');
  if (!decode(tokenIds).startsWith(text)) faults.push(`text "${text}" is not the decoding of its ids`);
  const count = segments?.reduce((sum, { tokenCount }) => sum + tokenCount, 0) ?? tokenIds.length;
  if (count !== tokenIds.length) faults.push(`segments of ${count} tokens, and ${tokenIds.length} ids`);
  if (completionTokens !== tokenIds.length) faults.push(`usage of ${completionTokens} tokens`);
  if (truth.logprobs === undefined) return faults;
  if (logprobs.length !== tokenIds.length) faults.push(`${logprobs.length} log probabilities`);
  const isTrue = (value: number | null, index: number): boolean =>
    value === null ? truth.mayLackLogprobs === true : value === truth.logprobs![index];
  if (!logprobs.every(isTrue)) faults.push('log probabilities differ from the true ones');
  return faults;
}
