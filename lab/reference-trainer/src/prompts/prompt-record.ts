import type { Prompt } from '@broomwagon/contracts';

/** One prompt of the data set, checked. */
export interface PromptRecord {
  /** Group id; unique in the data set. */
  id: string;
  /** Number of its line in the file, from 1. */
  line: number;
  prompt: Prompt;
  domain?: string;
}
