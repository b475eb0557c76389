import { LIMITS, type Prompt } from '@broomwagon/contracts';

const FIELDS = ['lora_path', 'model'] as const;

/** The field of the engine that names the model or adapter of a request, `lora_path` of SGLang first. */
export function modelField({ engineFields = {} }: Prompt): (typeof FIELDS)[number] | undefined {
  return FIELDS.find((field) => isModelName(engineFields[field]));
}

/** The model or adapter that a request names; undefined when it names none. */
export function requestedModel(prompt: Prompt): string | undefined {
  const field = modelField(prompt);
  return field && (prompt.engineFields![field] as string);
}

function isModelName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= LIMITS.modelNameCharacters;
}
