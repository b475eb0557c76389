import { BroomwagonError, isMultimodal, type ChatMessage, type Prompt } from '@broomwagon/contracts';
import type { GenerationRequest } from './engine-adapter';

/** Request to the engine in this attempt: the prompt with all tokens made so far, and the rest of the budget. */
export type AttemptPlan =
  /** The budget is used up: the sample ended with `length`, and the engine is not called. */
  | { kind: 'exhausted'; resumedBy?: 'tokens' | 'text' }
  | {
      kind: 'run';
      prompt:
        | { tokenIds: number[] }
        | { text: string }
        /** `continued`: the last message is the unfinished message of the assistant. */
        | { messages: ChatMessage[]; continued: boolean };
      /** Tokens this attempt may make. */
      budget: number;
      /** Rest of minTokens after the tokens made so far. */
      minTokens?: number;
      resumedBy?: 'tokens' | 'text';
    };

/**
 * Plans an attempt: the new prompt is prompt + made, the new budget is maxTokens - made. Token ids are continued
 * exactly; text and messages are continued as text, which is exact up to the tokenizer.
 * @param promptTokenIds token ids of text or messages from the engine, by which they are continued exactly
 * @throws BroomwagonError ENGINE_REJECTED if the prompt is not exactly one of the three, or made tokens cannot continue
 *   it
 */
export function planAttempt(request: GenerationRequest, promptTokenIds?: number[]): AttemptPlan {
  if (promptTokenIds !== undefined) return planAttempt({ ...request, prompt: { promptTokenIds } });
  const { prompt, made, maxTokens, sampling } = request;
  const kind = promptKind(prompt);
  const madeCount = made?.tokenCount ?? made?.tokenIds?.length ?? 0;
  const resumedBy = madeCount === 0 ? undefined : kind === 'promptTokenIds' ? 'tokens' : 'text';
  if (madeCount >= maxTokens) return { kind: 'exhausted', resumedBy };
  return {
    kind: 'run',
    prompt: continuedPrompt(request, kind, madeCount),
    budget: maxTokens - madeCount,
    minTokens: sampling?.minTokens === undefined ? undefined : Math.max(0, sampling.minTokens - madeCount),
    resumedBy,
  };
}

/** Whether a text, or messages of text, can be continued by token ids: all made tokens have ids, and budget is left. */
export function couldResumeByTokens({ prompt, made, maxTokens }: GenerationRequest): boolean {
  const count = made?.tokenCount ?? made?.tokenIds?.length ?? 0;
  // Token ids alone would leave out the images of the prompt.
  const isText = prompt.promptTokenIds === undefined && !isMultimodal(prompt);
  return isText && count > 0 && count < maxTokens && made?.tokenIds?.length === count;
}

const PROMPT_KINDS = ['text', 'messages', 'promptTokenIds'] as const;
type PromptKind = (typeof PROMPT_KINDS)[number];

function promptKind(prompt: Prompt): PromptKind {
  const given = PROMPT_KINDS.filter((kind) => prompt[kind] !== undefined);
  if (given.length !== 1) {
    throw new BroomwagonError('ENGINE_REJECTED', `A prompt has exactly one of ${PROMPT_KINDS.join(', ')}`, {
      field: 'prompt',
    });
  }
  return given[0]!;
}

function continuedPrompt({ prompt, made }: GenerationRequest, kind: PromptKind, madeCount: number) {
  if (kind === 'promptTokenIds') {
    if (madeCount > 0 && made?.tokenIds?.length !== madeCount) {
      throw new BroomwagonError('ENGINE_REJECTED', 'A prompt of token ids can only be resumed by token ids', {
        field: 'made',
      });
    }
    return { tokenIds: madeCount === 0 ? prompt.promptTokenIds! : [...prompt.promptTokenIds!, ...made!.tokenIds!] };
  }
  if (madeCount > 0 && made?.text === undefined) {
    throw new BroomwagonError('ENGINE_REJECTED', 'A prompt of text or messages can only be resumed by text', {
      field: 'made',
    });
  }
  const text = madeCount === 0 ? '' : made!.text!;
  if (kind === 'text') return { text: prompt.text! + text };
  // Made tokens without text (special tokens, an incomplete character) leave nothing to continue.
  if (text === '') return { messages: prompt.messages!, continued: false };
  return { messages: [...prompt.messages!, { role: 'assistant', content: text }], continued: true };
}
