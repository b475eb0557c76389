import type { GenerationResult } from '@broomwagon/engines';
import { EXPERTS_FIELD, type RoutedExperts } from './routed-experts';

/**
 * After a call: takes its routed experts out of the fields of the engine.
 * @param keptTokens tokens of the call that its response has kept
 * @param from row from which on the call was asked
 */
export function takeExperts(
  experts: RoutedExperts,
  result: GenerationResult | undefined,
  keptTokens: number,
  from: number,
): void {
  const { engineFields = {}, usage } = result ?? {};
  const { [EXPERTS_FIELD]: reported } = engineFields;
  delete engineFields[EXPERTS_FIELD];
  experts.take({
    reported,
    engineTokens: usage && usage.promptTokens + usage.completionTokens,
    // The prompt of a continued call contains the tokens before.
    keptTokens: (usage?.promptTokens ?? 0) + keptTokens,
    from,
  });
}
