import type { Stage } from '../zoo-entry';

const LAST_TOKENS = /(?: t(\d+))? t(\d+)$/;
const REPLACEMENT = '\uFFFD';
/** Divisor of the numbers of tokens that may end within a character. */
const HALF_NUMBERS = 3;

const isHalf = (number: string | undefined): boolean => number !== undefined && Number(number) % HALF_NUMBERS === 0;

/** Whether the last token ends with the first bytes of a character, which the next token completes. */
function endsInHalf(text: string): boolean {
  const [, before, last] = LAST_TOKENS.exec(text) ?? [];
  return isHalf(last) && !isHalf(before);
}

/** Text of tokens as the tokenizer decodes them: an incomplete character becomes a replacement character. */
export function decodeHalves(text: string): string {
  return endsInHalf(text) ? `${text.slice(0, -1)}${REPLACEMENT}` : text;
}

/**
 * Holds back the text of a token that ends within a character until the next token completes the character.
 * @param sendsWords whether the text up to its last space is sent at once
 */
export function halfCharacters(sendsWords: boolean): Stage {
  return (context, send) => {
    let { before } = context;
    let held = '';
    return (frame) => {
      if (frame.kind !== 'chunk') return send(frame);
      const { chunk } = frame;
      const { text } = chunk;
      const whole = held + text;
      const holds = chunk.reason === undefined && endsInHalf(before + text);
      const sentLength = !holds ? whole.length : sendsWords ? whole.lastIndexOf(' ') + 1 : 0;
      chunk.text = whole.slice(0, sentLength);
      held = whole.slice(sentLength);
      before = text;
      send(frame);
    };
  };
}
