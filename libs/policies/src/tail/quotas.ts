import { sortTexts } from '@broomwagon/contracts';

/**
 * Shares `places` among domains in proportion to their quotas, in whole places by the largest remainders. If the quotas
 * add up to less than `total`, places are left for all other domains.
 * @param total groups of a whole step, at least the sum of the quotas
 */
export function sharePlaces(
  quotas: Readonly<Record<string, number>>,
  total: number,
  places: number,
): Record<string, number> {
  const domains = sortTexts(Object.keys(quotas));
  const exact = domains.map((domain) => (quotas[domain]! * places) / total);
  const shares = exact.map(Math.floor);
  const named = Math.floor(exact.reduce((sum, share) => sum + share, 0) + 1e-9);
  let left = named - shares.reduce((sum, share) => sum + share, 0);
  const byRemainder = domains
    .map((_, index) => index)
    .sort((a, b) => exact[b]! - shares[b]! - (exact[a]! - shares[a]!) || a - b);
  for (const index of byRemainder) {
    if (left <= 0) break;
    shares[index]! += 1;
    left -= 1;
  }
  return Object.fromEntries(domains.map((domain, index) => [domain, shares[index]!]));
}
