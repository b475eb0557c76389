import type { FleetEngine } from '../../../../apps/trainer/src/fleet/fleet';
import type { PromptRecord } from '../../../../apps/trainer/src/prompts/prompt-record';
import { UsageError } from '../../../../apps/trainer/src/usage-error';

/**
 * Any engine may get any prompt: one that cannot take some of them would fail their groups for good.
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
