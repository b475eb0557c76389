import type { Stage } from '../zoo-entry';

const LAST_TOKEN = / t(\d+)$/;
const REPLACEMENT = '\uFFFD';

/** Some tokens of the simulator count as tokens that end with the first bytes of a character. */
function endsInHalf(text: string): boolean {
  const number = LAST_TOKEN.exec(text)?.[1];
  return number !== undefined && Number(number) % 3 === 0;
}

/** The text of tokens as the tokenizer decodes them: the bytes of a character that is not complete have no text. */
export function decodeHalves(text: string): string {
  return endsInHalf(text) ? `${text.slice(0, -1)}${REPLACEMENT}` : text;
}

/**
 * Holds back the last character of such a token until the next token completes it. A call whose prompt ends with such
 * a token does not send the character either: the detokenizer counts the prompt as decoded.
 */
export const halfCharacters: Stage = (_context, send) => {
  let held = '';
  return (frame) => {
    if (frame.kind !== 'chunk') return send(frame);
    const { chunk } = frame;
    let text = held + chunk.text;
    held = '';
    if (chunk.reason === undefined && endsInHalf(text)) {
      held = text.slice(-1);
      text = text.slice(0, -1);
    }
    chunk.text = text;
    send(frame);
  };
};
