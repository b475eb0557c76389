import type { LedgerSummary, WasteReason } from '@broomwagon/contracts';
import type { MeasuredCosts } from '../tail';

/**
 * Waste that a tail policy causes. Samples that failed, were aborted or have equal rewards are wasted under any policy.
 */
const OF_POLICY: readonly WasteReason[] = ['cut', 'unaccepted', 'surplus', 'version-span', 'off-policy'];

/** Costs that `auto` chooses by, as the ledger of a job has measured them. */
export function measuredCosts({
  offPolicyShare,
  lengthBias,
  waste,
}: Pick<LedgerSummary, 'offPolicyShare' | 'lengthBias' | 'waste'>): MeasuredCosts {
  const wasted = OF_POLICY.reduce((sum, reason) => sum + (waste.byReason[reason] ?? 0), 0);
  return { offPolicyShare, lengthBias, wasteShare: waste.tokens === 0 ? 0 : (waste.share * wasted) / waste.tokens };
}
