/**
 * Tokens of a simulated response. Token i is a function of (prompt, sample, i), so a resumed response continues with
 * exactly the tokens of the uncut one. Generated ids are 1,000,000 and up, far above any real vocabulary, and generated
 * text is words ` t<number>`: so a resume prompt alone shows where its generated tokens start. The first token is the
 * sample's key, so that the key can be read from a resume prompt, too.
 */
const GENERATED_ID_BASE = 1_000_000;
/** Bound of the numbers of tokens. */
export const TOKEN_NUMBERS = 1 << 17;

/**
 * A response is the sample's key followed by blocks of tokens from a fixed stock. The text of a block is written once,
 * so thousands of tokens need a few joins of strings, which are most of the simulator's work.
 */
const BLOCK_TOKENS = 64;
const STOCK_BLOCKS = 2_048;
const STOCK = Array.from({ length: STOCK_BLOCKS }, (_, block) => {
  const numbers = Array.from(
    { length: BLOCK_TOKENS },
    (__, offset) => mix(block * BLOCK_TOKENS + offset) & (TOKEN_NUMBERS - 1),
  );
  return { numbers, words: formatWords(numbers), ids: formatIds(numbers) };
});

export class TokenScript {
  private readonly key: number;
  /** Index of the first token of the first block. */
  private readonly origin: number;

  /**
   * @param promptHash any 32-bit hash of the prompt
   * @param sampleKey below {@link TOKEN_NUMBERS}
   * @param noise for tokens that are only random numbers: their seed, and the position at which their call starts
   */
  constructor(
    promptHash: number,
    readonly sampleKey: number,
    noise?: { seed: number; start: number },
  ) {
    this.key = noise === undefined ? mix(promptHash ^ mix(sampleKey)) : mix(noise.seed);
    this.origin = noise?.start ?? 1;
  }

  /** Number of the i-th token, counted from the start of the response. */
  numberAt(index: number): number {
    if (index === 0) return this.sampleKey;
    const position = index - this.origin;
    return this.block(position).numbers[position % BLOCK_TOKENS]!;
  }

  /** Words of tokens [from, to), without characters that JSON escapes. */
  text(from: number, to: number): string {
    return this.join(from, to, 'words', formatWords);
  }

  /** Ids of tokens [from, to), as the inside of a JSON array. */
  idList(from: number, to: number): string {
    return this.join(from, to, 'ids', formatIds).slice(1);
  }

  /** Log probabilities of tokens [from, to): invented, but the same every time. */
  logprobs(from: number, to: number): number[] {
    return Array.from({ length: to - from }, (_, offset) => inventLogprob(this.numberAt(from + offset)));
  }

  /** Whether the numbers are the first tokens of this response. */
  startsWith(numbers: readonly number[]): boolean {
    return numbers.every((number, index) => number === this.numberAt(index));
  }

  private block(position: number) {
    return STOCK[mix(this.key ^ Math.floor(position / BLOCK_TOKENS)) & (STOCK_BLOCKS - 1)]!;
  }

  private join(from: number, to: number, part: 'words' | 'ids', write: (numbers: number[]) => string): string {
    let joined = '';
    let index = from;
    while (index < to) {
      const position = index - this.origin;
      if (index > 0 && position % BLOCK_TOKENS === 0 && to - index >= BLOCK_TOKENS) {
        joined += this.block(position)[part];
        index += BLOCK_TOKENS;
      } else {
        joined += write([this.numberAt(index)]);
        index += 1;
      }
    }
    return joined;
  }
}

/** Log probability of a token where the script has it: a function of its number. */
export function inventLogprob(number: number): number {
  return -(number % 1_000) / 1_000;
}

/** Words of generated tokens. */
export function formatWords(numbers: number[]): string {
  return numbers.map((number) => ` t${number}`).join('');
}

/** Ids of generated tokens, with a comma before each. */
function formatIds(numbers: number[]): string {
  return numbers.map((number) => `,${GENERATED_ID_BASE + number}`).join('');
}

/** Finaliser of MurmurHash3: mixes 32 bits. */
function mix(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** Splits a prompt of token ids into the given ids and the numbers of the generated tokens at its end. */
export function splitTokenIds(tokenIds: readonly number[]): { given: readonly number[]; made: number[] } {
  let end = tokenIds.length;
  while (end > 0 && isGenerated(tokenIds[end - 1]!)) end--;
  return { given: tokenIds.slice(0, end), made: tokenIds.slice(end).map((id) => id - GENERATED_ID_BASE) };
}

/** Splits a prompt of text into the given text and the numbers of the generated tokens at its end. */
export function splitText(text: string): { given: string; made: number[] } {
  const numbers: number[] = [];
  let end = text.length;
  for (;;) {
    const start = text.lastIndexOf(' t', end - 1);
    const word = start === -1 ? '' : text.slice(start + 2, end);
    const number = Number(word);
    if (!/^\d{1,6}$/.test(word) || number >= TOKEN_NUMBERS) break;
    numbers.push(number);
    end = start;
  }
  return { given: text.slice(0, end), made: numbers.reverse() };
}

function isGenerated(tokenId: number): boolean {
  return tokenId >= GENERATED_ID_BASE && tokenId < GENERATED_ID_BASE + TOKEN_NUMBERS;
}
