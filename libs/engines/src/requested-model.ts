import { LIMITS, type Prompt } from '@broomwagon/contracts';

/** The model or adapter (`lora_path` of SGLang) that a request names; undefined when it names none. */
export function requestedModel({ engineFields = {} }: Prompt): string | undefined {
  return [engineFields.lora_path, engineFields.model].find(isModelName);
}

function isModelName(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= LIMITS.modelNameCharacters;
}
