import { LEDGER_BOUNDS, type LedgerAlarm, type LedgerBounds, type LedgerSummary } from '@broomwagon/contracts';

/** A length bias of more than 5 % raises an alarm also without a bound of the trainer. */
export const DEFAULT_LEDGER_BOUNDS: LedgerBounds = { lengthBias: 0.05 };
const NEAR = 0.8;

/** Bounds that are near or broken. */
export function ledgerAlarms(summary: LedgerSummary, bounds: LedgerBounds = {}): LedgerAlarm[] {
  const values: Required<LedgerBounds> = {
    lengthBias: Math.abs(summary.lengthBias - 1),
    truncatedShare: summary.trained.capShare,
    offPolicyShare: summary.offPolicyShare,
    versionSpan: summary.versionSpan.max,
    wasteShare: summary.waste.share,
    batchVariation: summary.batchVariation,
    cutsPerGroup: summary.cutsPerGroup.max,
  };
  const limits = { ...DEFAULT_LEDGER_BOUNDS, ...bounds };
  return LEDGER_BOUNDS.flatMap((bound) => {
    const limit = limits[bound];
    const value = values[bound];
    if (limit === undefined || value <= NEAR * limit) return [];
    return [{ bound, value, limit, state: value > limit ? 'over' : 'near' }];
  });
}
