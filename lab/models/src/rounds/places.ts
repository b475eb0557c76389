import type { ModelGroup, ModelRound } from './round-model.types';

// A round has `neededGroups` places, some of them reserved for pinned groups. With quotas each domain has places of its
// own: the places of domains + spare places + reserved places + accepted groups = `neededGroups`.

/** Places that are neither taken nor reserved. */
export function openPlaces(round: ModelRound): number {
  return round.neededGroups - round.accepted.length - round.reserved;
}

/** The domain whose places a group may take; '' for all domains without a quota. */
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

/** Reserves a place for a queued group: of the group's domain, else a spare one, else of the domain with the most. */
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

/** Takes the place of an accepted group: its reserved one, or one of its domain, or a spare one. */
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

/** Frees the place of a pinned group that left the round without being accepted, for groups of any domain. */
export function releaseReserved(round: ModelRound): void {
  round.reserved -= 1;
  if (round.places !== undefined) round.spare += 1;
}

/** Frees places of domains without live groups, for groups of any domain. Only after all new groups were submitted. */
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
