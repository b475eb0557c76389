import { join } from 'node:path';
import { UsageError } from '../../../reference-trainer/src/usage-error';
import { DEFAULTS, type TrainerOptions } from '../options/trainer-options';
import type { PromptRecord } from '../../../reference-trainer/src/prompts/prompt-record';
import type { FleetEngine } from '../../../reference-trainer/src/fleet/fleet';

/** File with the prompts of a run without `--prompts`. */
export const EXAMPLE_PROMPTS = join(__dirname, '../../examples/prompts.jsonl');

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

/**
 * Checks that all engines take all prompts: any engine may get any prompt, and the group of a refused prompt would fail
 * for good.
 * @throws UsageError naming the engine
 */
export function checkPromptKinds(engines: readonly FleetEngine[], prompts: readonly PromptRecord[]): void {
  const withTokenIds = prompts.find(({ prompt }) => prompt.promptTokenIds !== undefined);
  const textOnly = engines.find(({ capabilities }) => capabilities.tokenIdsIn === false);
  if (withTokenIds === undefined || textOnly === undefined) return;
  throw new UsageError(
    `line ${withTokenIds.line} of the prompts has promptTokenIds, and ${textOnly.endpoint} (${textOnly.dialect}) ` +
      'takes text and messages only',
  );
}
