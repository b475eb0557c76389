import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { transition, FunctionRunner } from '../library/function-runner';
import { splitPages } from '../library/lists';

/** Hash of a prompt, its key in the memory: 16 hex digits. */
export type PromptHash = string;

export interface RememberedPrompt {
  hash: PromptHash;
  samples: number;
  /** Mean of the natural logarithms of the lengths in tokens. */
  meanLog: number;
  deviationLog: number;
  capShare: number;
}
export interface LengthsOfPrompt {
  hash: PromptHash;
  lengths: readonly number[];
  atCap: boolean;
}

/** Prompts of one script, each with at most as many lengths as a group has samples. */
const PROMPTS_PER_SCRIPT = 32;
const remember = transition<{ prompts: readonly LengthsOfPrompt[]; repeatId?: string }, { remembered: number }>(
  'prompts/remember',
);
const lengths = transition<{ hashes: readonly PromptHash[] }, { prompts: RememberedPrompt[] }>('prompts/lengths');

/** Hash of the best name of a prompt: the id from the trainer, or its contents. */
export function promptHash(name: string): PromptHash {
  return createHash('sha256').update(name).digest('hex').slice(0, 16);
}

/** Response lengths by prompt, of all jobs of a pool: 65,536 packed hashes, at most 120 prompts each. */
@Injectable()
export class PromptMemoryStore {
  constructor(private readonly runner: FunctionRunner) {}

  /**
   * Adds lengths of at most 128 prompts.
   * @param rememberId id of the call: a repeat with the same id adds nothing. Without an id, a repeat counts twice
   * @returns number of prompts remembered
   * @throws BroomwagonError UNAVAILABLE
   */
  async remember(pool: PoolName, prompts: readonly LengthsOfPrompt[], rememberId?: string): Promise<number> {
    let remembered = 0;
    for (const [index, page] of splitPages(prompts, PROMPTS_PER_SCRIPT).entries()) {
      const repeatId = rememberId && `${rememberId}/${index}`;
      remembered += (await this.runner.run(remember, pool, { prompts: page, repeatId })).remembered;
    }
    return remembered;
  }

  /** Lengths of at most 128 prompts. Unknown prompts are missing. @throws BroomwagonError UNAVAILABLE */
  async lengths(pool: PoolName, hashes: readonly PromptHash[]): Promise<RememberedPrompt[]> {
    return (await this.runner.run(lengths, pool, { hashes })).prompts;
  }
}
