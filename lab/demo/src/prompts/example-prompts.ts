import { join } from 'node:path';

/** The prompts of a run that names none. */
export const EXAMPLE_PROMPTS = join(__dirname, '../../examples/prompts.jsonl');
