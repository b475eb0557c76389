import { NEVER, type RoundTerms } from '@broomwagon/policies';
import type { ModelGroup, ModelOpening, ModelRound, ModelSubmission } from './round-model.types';

/** A round that has no groups yet. */
export function newRound(opening: ModelOpening, terms: RoundTerms, nowMs: number): ModelRound {
  return {
    state: 'opening',
    settled: false,
    takenGroups: 0,
    submittedGroups: 0,
    live: new Set(),
    accepted: [],
    failed: [],
    outcomes: new Map(),
    replacedGroups: 0,
    maxReplacedGroups: terms.maxReplacedGroups ?? 0,
    held: new Set(),
    droppedGroups: 0,
    reserved: 0,
    spare: 0,
    liveOfDomain: new Map(),
    inFlight: 0,
    requestsDone: 0,
    requestsCut: 0,
    groupsRequeued: 0,
    wasted: {},
    acceptedTokens: 0,
    longestTokens: 0,
    bulkGroups: 0,
    bulkMs: 0,
    tailGroups: 0,
    tailMs: 0,
    ...opening,
    rules: terms.rules,
    choice: terms.choice,
    control: terms.control,
    openedAtMs: nowMs,
    places: terms.places && new Map(terms.places.map(({ domain, places }) => [domain, places])),
    keepTokens: terms.keepTokens ?? Infinity,
  };
}

/** A live group without its requests. */
export function newGroup(round: ModelRound, { groupId, samples, minSamples, domain }: ModelSubmission): ModelGroup {
  return {
    groupId,
    domain,
    samples,
    minSamples: minSamples ?? samples,
    requests: [],
    firstStep: round.step,
    state: 'live',
    round,
    live: 0,
    finished: 0,
    tokens: 0,
    longest: 0,
    cuts: 0,
    wasCut: false,
    taken: false,
    pinned: false,
    held: false,
    place: 0,
    pinStep: NEVER,
  };
}
