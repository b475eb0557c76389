import type { ModelGroup, ModelRound } from './round-model.types';

// The places of a round: `needed`, of which some are reserved for pinned groups, and with quotas each domain has its
// own. With quotas, domains' places + spare ones + reserved ones + accepted groups = needed.

/** Places that are neither taken nor reserved. */
export function openPlaces(round: ModelRound): number {
  return round.neededGroups - round.accepted.length - round.reserved;
}

/** The domain whose places a group may take; '' for all that no quota names. */
export function placeDomain(round: ModelRound, group: ModelGroup): string {
  const domain = group.domain ?? '';
  return round.places?.has(domain) === true ? domain : '';
}

export function hasPlace(round: ModelRound, group: ModelGroup): boolean {
  if (round.accepted.length >= round.neededGroups) return false;
  if (group.pinned) return true;
  if (openPlaces(round) <= 0) return false;
  return round.places === undefined || round.spare > 0 || round.places.get(placeDomain(round, group))! > 0;
}

/** For a group of the queue: of its domain, else a spare one, else of the domain with the most places. */
export function reservePlace(round: ModelRound, group: ModelGroup): void {
  round.reserved += 1;
  if (round.places === undefined || round.rules.reservesTaken) return;
  const own = placeDomain(round, group);
  const ofOwn = round.places.get(own)!;
  if (ofOwn === 0 && round.spare > 0) {
    round.spare -= 1;
    return;
  }
  const byCount = [...round.places].toSorted(([a, some], [b, others]) => others - some || (a < b ? -1 : 1));
  const [domain, places] = ofOwn > 0 ? ([own, ofOwn] as const) : byCount[0]!;
  round.places.set(domain, places - 1);
}

/** The group is accepted. */
export function takePlace(round: ModelRound, group: ModelGroup): void {
  if (group.pinned) {
    round.reserved -= 1;
  } else if (round.places !== undefined) {
    const domain = placeDomain(round, group);
    const own = round.places.get(domain)!;
    if (own > 0) round.places.set(domain, own - 1);
    else round.spare -= 1;
  }
}

/** A pinned group has left the round without being accepted: anybody may have its place. */
export function releaseReserved(round: ModelRound): void {
  round.reserved -= 1;
  if (round.places !== undefined) round.spare += 1;
}

/** Places of domains that nothing can take any more are for anybody. Only when all new groups are there. */
export function releaseDomains(round: ModelRound): void {
  for (const [domain, places] of round.places ?? []) {
    if (places === 0 || (round.liveOfDomain.get(domain) ?? 0) > 0) continue;
    round.spare += places;
    round.places!.set(domain, 0);
  }
}

/** Counts groups that may still take a place of their domain: live, neither pinned nor held. */
export function countLiveOfDomain(round: ModelRound, group: ModelGroup, by: 1 | -1): void {
  if (round.places === undefined || group.pinned) return;
  const domain = placeDomain(round, group);
  round.liveOfDomain.set(domain, (round.liveOfDomain.get(domain) ?? 0) + by);
}
