import type { Generation } from '../../core/generation';
import { toTokenName } from '../../core/token-names';
import { BEGIN, type Format, type Position } from '../../answers/format';
import { toFinishFields, toModelName, sumUsage } from './choice-fields';

/** Options of an answer of `/v1/completions`. */
export interface CompletionShape {
  /** Name that the client has sent; absent: the name of the engine. */
  model?: string;
  /** Number of choices of each prompt. */
  choicesPerPrompt: number;
  hasTokenIds: boolean;
  /** Streams end with a chunk of the usage. */
  hasUsage: boolean;
  /** Each chunk of a stream has the usage of its choice so far. */
  hasContinuousUsage: boolean;
}

/** Answers of `/v1/completions` with the further fields of vLLM. */
export class CompletionFormat implements Format {
  private readonly createdAt = Math.floor(Date.now() / 1_000);

  constructor(
    private readonly id: string,
    private readonly shape: CompletionShape,
  ) {}

  whole(generations: Generation[]): object {
    const choices = generations.map((generation, index) => this.choice(generation, BEGIN, index));
    return this.answer(generations[0]!, choices, {
      usage: this.usage(generations),
      ...toTransferFields(generations[0]!),
    });
  }

  chunk(generation: Generation, from: Position, index: number): object {
    const usage = this.shape.hasContinuousUsage && { usage: sumUsage([generation]) };
    return this.answer(generation, [this.choice(generation, from, index)], {
      ...usage,
      ...toTransferFields(generation),
    });
  }

  trailer(generations: Generation[]): object | undefined {
    return this.shape.hasUsage ? this.answer(generations[0]!, [], { usage: this.usage(generations) }) : undefined;
  }

  private answer(generation: Generation, choices: object[], more: object): object {
    const { createdAt: created, shape } = this;
    const model = toModelName(shape.model, generation);
    return { id: `cmpl-${this.id}`, object: 'text_completion', created, model, choices, ...more };
  }

  private usage(generations: Generation[]): object {
    const { choicesPerPrompt } = this.shape;
    return sumUsage(
      generations,
      generations.filter((_, index) => index % choicesPerPrompt === 0),
    );
  }

  private choice(generation: Generation, from: Position, index: number): object {
    const { tokens, report } = generation;
    const { prompt_token_ids: _prompt, kv_transfer_params: _transfer, ...fields } = report.fields;
    const ids = tokens.idsFrom(from.tokens);
    return {
      ...fields,
      index,
      text: tokens.textFrom(from.characters),
      logprobs: buildLogprobs(generation, from),
      ...toFinishFields(generation),
      ...(this.shape.hasTokenIds && { token_ids: ids ?? null, ...toPromptIdFields(generation, from) }),
    };
  }
}

/** Log probabilities. Without names, tokens are written as their ids, which costs least. */
function buildLogprobs({ input, tokens }: Generation, from: Position): object | null {
  const logprobs = input.sampling.logprobs ? tokens.logprobsFrom(from.tokens) : undefined;
  if (logprobs === undefined) return null;
  const named = tokens.names?.from(from.tokens);
  const ids = { tokens: tokens.idsFrom(from.tokens)?.map(toTokenName), top_logprobs: null };
  return { token_logprobs: logprobs, ...(named ?? ids) };
}

/** Prompt token ids. For a prompt of text, they are in the last answer of the engine, before the continued tokens. */
function toPromptIdFields({ input, report, end }: Generation, from: Position): object {
  const given = input.prompt.promptTokenIds;
  if (given !== undefined) return from === BEGIN ? { prompt_token_ids: given } : {};
  const { prompt_token_ids: ids } = report.fields;
  return end !== undefined && Array.isArray(ids) ? { prompt_token_ids: ids.slice(0, report.promptTokens) } : {};
}

function toTransferFields({ report }: Generation): object {
  const { kv_transfer_params: transfer } = report.fields;
  return transfer === undefined ? {} : { kv_transfer_params: transfer };
}
