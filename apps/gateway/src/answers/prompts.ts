import { findPromptFault, invalidField, LIMITS, type Prompt } from '@broomwagon/contracts';

/** Maximum generations of one request, over all its prompts. */
export const MAX_CHOICES = LIMITS.samplesPerGroup;

/**
 * Parses a prompt, or a list of prompts.
 * @param kind kind of the prompts; absent: each prompt is a text or token ids
 * @throws BroomwagonError VALIDATION_FAILED
 */
export function parsePrompts(
  value: unknown,
  field: string,
  kind?: 'text' | 'promptTokenIds',
): { prompts: Prompt[]; isList: boolean } {
  if (value === undefined) throw invalidField(field, 'is missing');
  const isList = Array.isArray(value) && typeof value[0] !== 'number';
  const list = isList ? (value as unknown[]) : [value];
  if (list.length === 0 || list.length > MAX_CHOICES) {
    throw invalidField(field, `must be 1 to ${MAX_CHOICES} prompts`);
  }
  const prompts = list.map((one) => {
    const given = { [kind ?? (typeof one === 'string' ? 'text' : 'promptTokenIds')]: one };
    const fault = findPromptFault(given);
    if (fault) throw invalidField(field, fault.reason);
    return given as Prompt;
  });
  return { prompts, isList };
}

/** Number of choices of each prompt. @throws BroomwagonError VALIDATION_FAILED */
export function parseChoiceCount(n: unknown, prompts: Prompt[], field: string): number {
  if (Number.isSafeInteger(n) && (n as number) >= 1 && (n as number) * prompts.length <= MAX_CHOICES)
    return n as number;
  throw invalidField(field, `must be a whole number from 1, with at most ${MAX_CHOICES} choices of all prompts`);
}
