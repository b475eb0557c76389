import type { TokenIncrement } from '@broomwagon/engines';

/** Name that engines use for a token without its text. */
export const toTokenName = (id: number | undefined): string => `token_id:${id}`;

/** Tokens as `/v1/completions` writes them beside their log probabilities. */
export interface NamedTokens {
  tokens: string[];
  /** Alternatives of each token; null if the engine has reported none. */
  top_logprobs: (Record<string, number> | null)[];
  /** Number of characters before each token. */
  text_offset: number[];
}

/** Texts and alternatives of the tokens of a response, as its engines have reported them. */
export class TokenNames {
  private readonly all: NamedTokens = { tokens: [], top_logprobs: [], text_offset: [] };
  private characters = 0;

  /**
   * Adds an increment. A token without a name gets the text of the increment if the increment has no other token, else
   * its id.
   */
  take({ choice, tokenIds, text, tokenCount }: TokenIncrement): void {
    const { tokens, top_logprobs: tops } = choice?.logprobs ?? {};
    for (let index = 0; index < tokenCount; index++) {
      const name = tokens?.[index] ?? (tokenCount === 1 ? text : toTokenName(tokenIds?.[index]));
      this.all.tokens.push(name);
      this.all.top_logprobs.push(tops?.[index] ?? null);
      this.all.text_offset.push(this.characters);
      this.characters += [...name].length;
    }
  }

  from(start: number): NamedTokens {
    const { tokens, top_logprobs: tops, text_offset: offsets } = this.all;
    return { tokens: tokens.slice(start), top_logprobs: tops.slice(start), text_offset: offsets.slice(start) };
  }

  clear(): void {
    this.characters = 0;
    for (const list of Object.values(this.all)) (list as unknown[]).length = 0;
  }
}
