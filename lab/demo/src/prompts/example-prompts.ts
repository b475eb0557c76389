import { join } from 'node:path';

/** File with the prompts of a run without `--prompts`. */
export const EXAMPLE_PROMPTS = join(__dirname, '../../examples/prompts.jsonl');
