import { BroomwagonError, type GroupSubmission } from '@broomwagon/contracts';

/** Older versions of SGLang refuse a request that fills the context to its last token. */
const MARGIN_TOKENS = 1;

/**
 * Lowers `maxTokens` of a group to the tokens that its prompt leaves free in the context of the engines. The length of
 * a prompt is known only if the message has its token ids.
 * @param contextTokens largest context of the engines of the pool
 * @param field path of the group in the request, for example `groups.3`
 * @throws BroomwagonError CONTEXT_TOO_LONG: no engine can ever take a sample of the group
 */
export function fitToContext(group: GroupSubmission, contextTokens: number, field: string): GroupSubmission {
  const promptTokens = group.prompt?.promptTokenIds?.length;
  const { maxTokens } = group;
  const details = { contextTokens, maxTokens, promptTokens };
  if (promptTokens === undefined) {
    if (maxTokens < contextTokens) return group;
    const message =
      `${field}.maxTokens: ${maxTokens} tokens and a prompt never fit the context of the engines, ` +
      `${contextTokens} tokens; lower maxTokens`;
    throw new BroomwagonError('CONTEXT_TOO_LONG', message, { field: `${field}.maxTokens`, details });
  }
  const left = contextTokens - promptTokens - MARGIN_TOKENS;
  if (left < 1) {
    const message =
      `${field}.prompt: ${promptTokens} tokens leave no room for a response in the context of the engines, ` +
      `${contextTokens} tokens`;
    throw new BroomwagonError('CONTEXT_TOO_LONG', message, { field: `${field}.prompt`, details });
  }
  return maxTokens <= left ? group : { ...group, maxTokens: left };
}
