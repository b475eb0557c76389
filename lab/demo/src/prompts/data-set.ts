import { UsageError } from '../../../reference-trainer/src/usage-error';
import { DEFAULTS, type TrainerOptions } from '../options/trainer-options';
import type { PromptRecord } from '../../../reference-trainer/src/prompts/prompt-record';

/**
 * Selects the prompts to roll out: the first steps x groups of the file, or all.
 * @throws UsageError for more groups than prompts, or more steps than the prompts are enough for
 */
export function selectDataSet(
  prompts: readonly PromptRecord[],
  { steps, groups }: Pick<TrainerOptions, 'steps' | 'groups'>,
): PromptRecord[] {
  if (groups > prompts.length) {
    throw new UsageError(`more groups than prompts: --groups ${groups}, but there are ${prompts.length} prompts`);
  }
  if (steps === 'all') return [...prompts];
  const possible = Math.ceil(prompts.length / groups);
  if (steps !== undefined && steps > possible) {
    throw new UsageError(
      `more steps than prompts: --steps ${steps} of ${groups} groups, but ${prompts.length} prompts give ` +
        `${possible} steps (use --steps all for all of them)`,
    );
  }
  return prompts.slice(0, (steps ?? Math.min(DEFAULTS.steps, possible)) * groups);
}
