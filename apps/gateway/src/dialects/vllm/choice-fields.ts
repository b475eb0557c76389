import type { Generation } from '../../core/generation';
import type { GenerationEnd } from '../../core/response-parts';

/** Model name of an answer: from the client, else from the engine, else from `/v1/models`. */
export function toModelName(named: string | undefined, { calls }: Generation): string {
  return named ?? calls.model ?? 'default';
}

/** Finish reason of a choice, and its weights at its end. */
export function toFinishFields({ end, report }: Generation): object {
  if (end === undefined) return { finish_reason: null };
  return { finish_reason: end.reason, ...toStopFields(end), weight_versions: report.spans };
}

function toStopFields(end: GenerationEnd): object {
  return end.reason === 'stop' && end.matched !== undefined ? { stop_reason: end.matched } : {};
}

/** @param prompts one generation of each prompt: choices of one prompt share its tokens */
export function sumUsage(choices: Generation[], prompts: Generation[] = choices): object {
  const promptTokens = prompts.reduce((sum, choice) => sum + countPromptTokens(choice), 0);
  const completionTokens = choices.reduce((sum, { tokens }) => sum + tokens.count, 0);
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
  };
}

function countPromptTokens({ report, input }: Generation): number {
  return report.promptTokens ?? input.prompt.promptTokenIds?.length ?? 0;
}
