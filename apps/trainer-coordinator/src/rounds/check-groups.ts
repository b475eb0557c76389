import {
  BroomwagonError,
  LIMITS,
  type GroupSubmission,
  type Prompt,
  type SamplingParameters,
} from '@broomwagon/contracts';

type Check = (value: unknown) => boolean;
const isNumber: Check = (value) => typeof value === 'number' && Number.isFinite(value);
const isInteger: Check = (value) => Number.isSafeInteger(value);
const isBoolean: Check = (value) => typeof value === 'boolean';
const listOf =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const isText: Check = (value) => typeof value === 'string';
const isTokenId: Check = (value) => isInteger(value) && (value as number) >= 0;
const isChatMessage: Check = (value) =>
  typeof value === 'object' &&
  value !== null &&
  isText((value as Record<string, unknown>).role) &&
  isText((value as Record<string, unknown>).content);

const PROMPT_FIELDS: Record<keyof Prompt, Check> = {
  text: isText,
  messages: listOf(isChatMessage),
  promptTokenIds: listOf(isTokenId),
};
const SAMPLING_FIELDS: Record<keyof SamplingParameters, Check> = {
  temperature: isNumber,
  topP: isNumber,
  topK: isInteger,
  minP: isNumber,
  seed: isInteger,
  stop: listOf(isText),
  stopTokenIds: listOf(isTokenId),
  minTokens: isInteger,
  repetitionPenalty: isNumber,
  logprobs: isBoolean,
};

/**
 * Checks what the shape of the message cannot say: each group once in the page, one kind of prompt, inline prompts
 * within their limit, known sampling parameters of the right types.
 * @throws BroomwagonError VALIDATION_FAILED or PAYLOAD_TOO_LARGE, naming the field
 */
export function checkGroups(groups: readonly GroupSubmission[]): void {
  const seen = new Set<string>();
  for (const [position, group] of groups.entries()) {
    const field = (name: string): string => `groups.${position}.${name}`;
    if (seen.has(group.groupId)) throw invalid(field('groupId'), `${group.groupId} comes twice in the page`);
    seen.add(group.groupId);
    if ((group.prompt === undefined) === (group.promptRef === undefined)) {
      throw invalid(field('prompt'), 'exactly one of prompt and promptRef is needed');
    }
    if (group.prompt !== undefined) checkPrompt(group.prompt, field('prompt'));
    checkSampling(group.sampling ?? {}, field('sampling'));
  }
}

function checkSampling(sampling: SamplingParameters, field: string): void {
  checkFields(sampling, SAMPLING_FIELDS, field);
  const bytes = Buffer.byteLength(JSON.stringify(sampling));
  if (bytes > LIMITS.samplingBytes) throw invalid(field, `${bytes} bytes; at most ${LIMITS.samplingBytes}`);
}

function checkPrompt(prompt: Prompt, field: string): void {
  checkFields(prompt, PROMPT_FIELDS, field);
  const kinds = Object.values(prompt).filter((value) => value !== undefined) as { length: number }[];
  if (kinds.length !== 1) throw invalid(field, 'exactly one of text, messages and promptTokenIds is needed');
  if (kinds[0]!.length === 0) throw invalid(field, 'the prompt is empty');
  const bytes = Buffer.byteLength(JSON.stringify(prompt));
  if (bytes > LIMITS.inlinePromptBytes) {
    throw new BroomwagonError(
      'PAYLOAD_TOO_LARGE',
      `${field} has ${bytes} bytes; over ${LIMITS.inlinePromptBytes} it must be put by payload.put`,
      { field },
    );
  }
}

function checkFields(value: object, checks: Record<string, Check>, field: string): void {
  for (const [name, part] of Object.entries(value)) {
    if (part === undefined) continue;
    if (!Object.hasOwn(checks, name)) throw invalid(`${field}.${name}`, 'unknown field');
    if (!checks[name]!(part)) throw invalid(`${field}.${name}`, 'wrong type');
  }
}

function invalid(field: string, reason: string): BroomwagonError {
  return new BroomwagonError('VALIDATION_FAILED', `${field}: ${reason}`, { field });
}
