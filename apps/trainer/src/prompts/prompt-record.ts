import type { Prompt } from '@broomwagon/contracts';

/** One prompt of the data set, checked. */
export interface PromptRecord {
  /** Group id; unique in the data set. */
  id: string;
  /** Where it stands in the file, 1-based. */
  line: number;
  prompt: Prompt;
  domain?: string;
}
