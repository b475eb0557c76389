/** Samples with one length: `ended` have exactly this length, `censored` were cut at this length and are longer. */
export interface Observed {
  value: number;
  ended: number;
  censored: number;
}

/** An estimated distribution: a share for each length at which a sample ended. */
export interface Survival {
  /** Ascending by `value`. `share` of all samples have exactly this value, and `survival` of all samples are longer. */
  steps: { value: number; share: number; survival: number }[];
  count: number;
}

/**
 * Estimates a distribution by Kaplan and Meier; some samples were cut before their end. A cut sample counts up to the
 * length of its cut. If a cut and an ended sample have the same length, the cut sample counts as longer. The share
 * above the longest value is added to that value (Efron), so the shares add up to 1.
 * @param observed each value once, in any order
 */
export function kaplanMeier(observed: readonly Observed[]): Survival {
  const ascending = observed
    .filter(({ ended, censored }) => ended + censored > 0)
    .toSorted((a, b) => a.value - b.value);
  const count = ascending.reduce((sum, { ended, censored }) => sum + ended + censored, 0);
  const steps: Survival['steps'] = [];
  let atRisk = count;
  let survival = 1;
  ascending.forEach(({ value, ended, censored }, index) => {
    const after = index === ascending.length - 1 ? 0 : survival * (1 - ended / atRisk);
    if (survival > after) steps.push({ value, share: survival - after, survival: after });
    survival = after;
    atRisk -= ended + censored;
  });
  return { steps, count };
}

/** Returns the mean of a distribution; 0 for an empty distribution. */
export function computeMean({ steps }: Survival): number {
  return steps.reduce((sum, { value, share }) => sum + value * share, 0);
}

/** Returns the lowest value that a share of at least `q` does not exceed; 0 for an empty distribution. */
export function computeQuantile({ steps }: Survival, q: number): number {
  const step = steps.find(({ survival }) => 1 - survival >= q - 1e-12);
  return (step ?? steps.at(-1))?.value ?? 0;
}
