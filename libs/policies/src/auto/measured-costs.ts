import type { LedgerSummary, WasteReason } from '@broomwagon/contracts';
import type { MeasuredCosts } from '../tail';

/**
 * Reasons of waste that a tail policy causes. Failed and aborted samples, and equal rewards, cost the same under any
 * policy.
 */
const OF_POLICY: readonly WasteReason[] = ['cut', 'unaccepted', 'surplus', 'version-span', 'off-policy'];

/** Returns the costs that the bounds of `auto` limit, as measured in the ledger of a job. */
export function measuredCosts({
  offPolicyShare,
  lengthBias,
  waste,
}: Pick<LedgerSummary, 'offPolicyShare' | 'lengthBias' | 'waste'>): MeasuredCosts {
  const wasted = OF_POLICY.reduce((sum, reason) => sum + (waste.byReason[reason] ?? 0), 0);
  return { offPolicyShare, lengthBias, wasteShare: waste.tokens === 0 ? 0 : (waste.share * wasted) / waste.tokens };
}
