/** Something that is wrong. */
export interface Finding {
  /** Which rule is broken, e.g. `lease-not-in-set-of-server`. */
  check: string;
  /** Where: an id. */
  where: string;
  /** What was seen there; a finding is the same again only when this is the same. */
  detail: string;
  repaired: boolean;
}

/** Findings that are in both looks: what is in one only was about to change. */
export function confirmed(first: readonly Finding[], second: readonly Finding[]): Finding[] {
  const names = new Set(first.map(nameOf));
  const seen = new Set<string>();
  return second.filter((finding) => {
    const name = nameOf(finding);
    if (!names.has(name) || seen.has(name)) return false;
    seen.add(name);
    return true;
  });
}

function nameOf({ check, where, detail }: Finding): string {
  return `${check} ${where} ${detail}`;
}
