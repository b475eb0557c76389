/** A broken rule. */
export interface Finding {
  /** Which rule is broken, e.g. `lease-not-in-set-of-server`. */
  check: string;
  /** Id of the object with the fault. */
  where: string;
  /** Observed values. Two findings are equal only when `check`, `where` and `detail` are equal. */
  detail: string;
  repaired: boolean;
}

/** Findings that both looks have. A finding of one look only may be a change in progress. */
export function confirmed(first: readonly Finding[], second: readonly Finding[]): Finding[] {
  const names = new Set(first.map(formatFinding));
  const seen = new Set<string>();
  return second.filter((finding) => {
    const name = formatFinding(finding);
    if (!names.has(name) || seen.has(name)) return false;
    seen.add(name);
    return true;
  });
}

function formatFinding({ check, where, detail }: Finding): string {
  return `${check} ${where} ${detail}`;
}
