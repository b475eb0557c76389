import type { FleetEngine } from '../../../reference-trainer/src/fleet/fleet';
import type { PromptRecord } from '../../../reference-trainer/src/prompts/prompt-record';
import { UsageError } from '../../../reference-trainer/src/usage-error';

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
