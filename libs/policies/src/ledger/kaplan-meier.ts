/** Lengths of one value: how many ended there, and how many were cut there and are longer (right-censored). */
export interface Observed {
  value: number;
  ended: number;
  censored: number;
}

/** The distribution that the estimate gives: a share for each value at which a sample ended. */
export interface Survival {
  /** Ascending by value. `share` of all have exactly this value; `survival` of all are longer. */
  steps: { value: number; share: number; survival: number }[];
  count: number;
}

/**
 * Kaplan and Meier's estimate of a distribution some of whose values were cut before their end. A cut value counts as
 * at risk up to where it was cut; of a cut and an ended value that are equal, the cut one is longer. The share above
 * the longest value belongs to that value (Efron), so the shares add up to 1.
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

/** Mean of a distribution; 0 of an empty one. */
export function computeMean({ steps }: Survival): number {
  return steps.reduce((sum, { value, share }) => sum + value * share, 0);
}

/** The least value that at least a share `q` does not exceed; 0 of an empty one. */
export function computeQuantile({ steps }: Survival, q: number): number {
  const step = steps.find(({ survival }) => 1 - survival >= q - 1e-12);
  return (step ?? steps.at(-1))?.value ?? 0;
}
