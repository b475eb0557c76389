import { invalidField, type RebalanceSettings } from '@broomwagon/contracts';
import { checkTiers, TIER_COST_DEFAULTS } from '@broomwagon/policies';

/** Default settings: off, with the costs of a 7B model on one device. */
export const REBALANCE_DEFAULTS: RebalanceSettings = {
  ...TIER_COST_DEFAULTS,
  version: 0,
  mode: 'off',
  policy: 'tier-cost',
  tiers: [...TIER_COST_DEFAULTS.tiers],
  stepBaseSeconds: 0.0085,
  stepPerSequenceSeconds: 0.00004,
  prefillTokensPerSecond: 20_000,
  kvBytesPerToken: 0,
  kvBytesPerSecond: 0,
  kvSetupSeconds: 0.02,
  movesDrained: true,
  maxRunning: 0,
  minPlanIntervalMs: 5_000,
  planIntervalMs: 60_000,
  planIntervalSteps: 0,
};

/** The settings after a change of some fields. @throws BroomwagonError VALIDATION_FAILED: the tiers are invalid */
export function changedSettings(before: RebalanceSettings, change: Partial<RebalanceSettings>): RebalanceSettings {
  const given = Object.entries(change).filter(([, value]) => value !== undefined);
  const settings = { ...before, ...Object.fromEntries(given) } as RebalanceSettings;
  checkTiers(settings.tiers);
  if (settings.stepBaseSeconds + settings.stepPerSequenceSeconds === 0) {
    throw invalidField('stepBaseSeconds', 'a decode step must take time');
  }
  return settings;
}
