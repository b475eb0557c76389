import type { LedgerSummary, WasteReason } from '@broomwagon/contracts';
import type { MeasuredCosts } from '../tail';

/** Waste that a tail policy causes. What failed, was aborted or has equal rewards is not less under another policy. */
const OF_POLICY: readonly WasteReason[] = ['cut', 'unaccepted', 'surplus', 'version-span', 'off-policy'];

/** What the ledger of a job has of the costs that `auto` chooses by. */
export function measuredCosts({
  offPolicyShare,
  lengthBias,
  waste,
}: Pick<LedgerSummary, 'offPolicyShare' | 'lengthBias' | 'waste'>): MeasuredCosts {
  const wasted = OF_POLICY.reduce((sum, reason) => sum + (waste.byReason[reason] ?? 0), 0);
  return { offPolicyShare, lengthBias, wasteShare: waste.tokens === 0 ? 0 : (waste.share * wasted) / waste.tokens };
}
