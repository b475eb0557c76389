import { createHash } from 'node:crypto';
import { formatWords, inventLogprob, splitText, splitTokenIds, TOKEN_NUMBERS, TokenScript } from './token-script';

export interface ChatMessage {
  role: string;
  content: string;
}

/** A prompt as it was received. */
export type WirePrompt =
  | { kind: 'text'; text: string }
  | { kind: 'tokenIds'; tokenIds: number[] }
  | { kind: 'messages'; messages: ChatMessage[]; continued: boolean };

/** Prompt and sample that a request is for, and its tokens so far. */
export interface SampleIdentity {
  /** Key of the prompt, 16 hex characters: the same for all its samples and attempts. */
  promptKey: string;
  /** Text of the prompt, for files of lengths that name prompts by their texts. */
  promptText?: string;
  script: TokenScript;
  /** Number of tokens of the prompt itself. */
  promptTokens: number;
  /** Number of generated tokens at the end of a resume prompt. */
  madeTokens: number;
}

/** Sample keys below this bound are sampling seeds; the others count the requests without a seed. */
const SEED_KEYS = TOKEN_NUMBERS / 2;
/** Rough length of a token of a real tokenizer, characters. */
const CHARACTERS_PER_TOKEN = 4;
const PIECES = new RegExp(`.{1,${CHARACTERS_PER_TOKEN}}`, 'gs');
/** Bound of the ids of prompt tokens, which are invented. */
const VOCABULARY = 100_000;
/** Most prompts that are remembered by their token ids. */
const MAX_TOKENIZED = 65_536;
/** Prompts by the key of their token ids, the latest last: engines of one model have one tokenizer. */
const tokenized = new Map<string, WirePrompt>();

/** Log probability of a token of a response at a position where the response has another token. */
const UNLIKELY = -8;

interface SplitPrompt {
  given: WirePrompt;
  /** Numbers of the generated tokens at the end of the prompt. */
  made: number[];
}

/**
 * Identifies samples only by data that every client sends: the prompt and the `seed` parameter. Without a seed, the
 * n-th request for a prompt is its n-th sample. All engines of a process share one instance, so samples of a prompt
 * differ wherever they run. A resumed request is identified by the generated tokens at the end of its prompt.
 */
export class SampleIdentities {
  private seen = new Map<string, number>();
  /** Number of prompts that ended in generated tokens other than the simulator would have generated. */
  resumeMismatches = 0;

  /**
   * @param noise whether tokens are random numbers of a call, functions of its seed and of their position in the call,
   * as of an engine for which all tokens are equally likely. Responses keep their lengths.
   */
  constructor(private readonly noise = false) {}

  identify(prompt: WirePrompt, samplingSeed: number | undefined): SampleIdentity {
    const identity = this.exactIdentity(prompt, samplingSeed);
    if (!this.noise) return identity;
    const seed = samplingSeed ?? Math.floor(Math.random() * 2 ** 31);
    const { script, madeTokens: start } = identity;
    return { ...identity, script: new TokenScript(0, script.sampleKey, { seed, start }) };
  }

  private exactIdentity(prompt: WirePrompt, samplingSeed: number | undefined): SampleIdentity {
    const split = this.untokenized(splitPrompt(prompt));
    const resumed = split.made.length > 0 && buildIdentity(split.given, split.made[0]!);
    const isOurs = resumed && (this.noise || resumed.script.startsWith(split.made));
    if (isOurs) return { ...resumed, madeTokens: split.made.length };
    if (split.made.length > 0) this.resumeMismatches += 1;
    const fresh = split.made.length > 0 ? prompt : split.given;
    const key = buildPromptKey(fresh);
    return buildIdentity(
      fresh,
      samplingSeed === undefined ? this.nextKey(key) : positiveModulo(samplingSeed, SEED_KEYS),
    );
  }

  /** Token ids of a text or of messages; {@link identify} takes a prompt of these ids for the same prompt. */
  tokenize(prompt: WirePrompt): number[] {
    const tokenIds = listTexts(prompt).flatMap((text) => {
      const pieces = text.match(PIECES) ?? [''];
      return pieces.map((piece) => createHash('sha256').update(piece).digest().readUInt32LE() % VOCABULARY);
    });
    tokenized.set(buildPromptKey({ kind: 'tokenIds', tokenIds }), prompt);
    if (tokenized.size > MAX_TOKENIZED) tokenized.delete(tokenized.keys().next().value!);
    return tokenIds;
  }

  /** Text of token ids: of generated ids, after the ids of a prompt that {@link tokenize} has seen. */
  detokenize(tokenIds: readonly number[]): string {
    const { given, made } = splitTokenIds(tokenIds);
    const known = tokenized.get(buildPromptKey({ kind: 'tokenIds', tokenIds: [...given] }));
    return [...(known === undefined ? [] : listTexts(known)), formatWords(made)].join('');
  }

  /**
   * Log probabilities that the model gives the token ids of a prompt when it reads them; null for the first one. A
   * generated token has its log probability at its position of the response, and is unlikely at any other.
   */
  score(tokenIds: readonly number[]): (number | null)[] {
    const { given, made } = splitTokenIds(tokenIds);
    const prompt = this.untokenized({ given: { kind: 'tokenIds', tokenIds: [...given] }, made }).given;
    const { script } = buildIdentity(prompt, made[0] ?? 0);
    const known = given.map(inventLogprob);
    const generated = made.map((number, index) =>
      this.noise || script.numberAt(index) === number ? inventLogprob(number) : UNLIKELY,
    );
    return [null, ...[...known, ...generated].slice(1)];
  }

  reset(): void {
    this.seen.clear();
    this.resumeMismatches = 0;
  }

  private untokenized({ given, made }: SplitPrompt): SplitPrompt {
    return { given: (given.kind === 'tokenIds' && tokenized.get(buildPromptKey(given))) || given, made };
  }

  private nextKey(promptKey: string): number {
    const count = this.seen.get(promptKey) ?? 0;
    this.seen.set(promptKey, count + 1);
    return SEED_KEYS + (count % SEED_KEYS);
  }
}

function positiveModulo(value: number, modulus: number): number {
  return ((Math.trunc(value) % modulus) + modulus) % modulus;
}

function buildIdentity(prompt: WirePrompt, sampleKey: number): SampleIdentity {
  const promptKey = buildPromptKey(prompt);
  return {
    promptKey,
    promptText: prompt.kind === 'text' ? prompt.text : undefined,
    script: new TokenScript(Number.parseInt(promptKey.slice(0, 8), 16), sampleKey),
    promptTokens: countPromptTokens(prompt),
    madeTokens: 0,
  };
}

/** First 16 hex characters of a hash of the prompt without generated tokens. */
function buildPromptKey(prompt: WirePrompt): string {
  const hash = createHash('sha256');
  if (prompt.kind === 'tokenIds') hash.update(Uint32Array.from(prompt.tokenIds));
  else if (prompt.kind === 'text') hash.update(prompt.text);
  else hash.update(JSON.stringify(prompt.messages.map(({ role, content }) => [role, content])));
  return hash.digest('hex').slice(0, 16);
}

function countPromptTokens(prompt: WirePrompt): number {
  if (prompt.kind === 'tokenIds') return prompt.tokenIds.length;
  return listTexts(prompt).reduce((sum, text) => sum + Math.max(1, Math.ceil(text.length / CHARACTERS_PER_TOKEN)), 0);
}

function listTexts(prompt: WirePrompt): string[] {
  if (prompt.kind === 'tokenIds') return [];
  return prompt.kind === 'text' ? [prompt.text] : prompt.messages.map(({ content }) => content);
}

function splitPrompt(prompt: WirePrompt): SplitPrompt {
  if (prompt.kind === 'tokenIds') {
    const { given, made } = splitTokenIds(prompt.tokenIds);
    return { given: { kind: 'tokenIds', tokenIds: [...given] }, made };
  }
  if (prompt.kind === 'text') {
    const { given, made } = splitText(prompt.text);
    return { given: { kind: 'text', text: given }, made };
  }
  const last = prompt.messages.at(-1);
  if (!prompt.continued || last === undefined) return { given: prompt, made: [] };
  const { given, made } = splitText(last.content);
  const messages = prompt.messages.slice(0, -1);
  if (given !== '') messages.push({ ...last, content: given });
  return { given: { kind: 'messages', messages, continued: given !== '' }, made };
}
