import { eventSubject, type GroupId, type RoundId } from '@broomwagon/contracts';
import type { StepReport } from '../../lab/reference-trainer/src/loop/step-report';
import type { ResultLine } from '../../lab/reference-trainer/src/results/result-line';
import { sharePlaces } from '../../libs/policies/src/tail/quotas';
import type { TestPrompt } from './data-set';
import type { TestSystem } from './test-system';

/** Groups that each round sends to the long-tail queue from now on, from the events. */
export function watchQueue(system: TestSystem): Map<RoundId, Set<GroupId>> {
  const queued = new Map<RoundId, Set<GroupId>>();
  system.client.messaging.subscribe(eventSubject(system.pool, 'longtail.requeued'), (body) => {
    const { roundId, groupId } = body as { roundId: RoundId; groupId: GroupId };
    queued.set(roundId, (queued.get(roundId) ?? new Set()).add(groupId));
  });
  return queued;
}

/** Whether all events of these steps have arrived. */
export function hasAllQueued(queued: ReadonlyMap<RoundId, Set<GroupId>>, steps: readonly StepReport[]): boolean {
  return steps.every(({ roundId, groupsRequeued }) => (queued.get(roundId)?.size ?? 0) === groupsRequeued);
}

interface PlaceRules {
  quotas?: Record<string, number>;
  /** Each group of the queue has a place of its own, besides the places of domains. */
  reserved: boolean;
}

/**
 * Faults of the groups that each step trained, in words. With reserved places a step trains all groups that it took
 * from the queue. Each domain, and all other domains together, has its places of the rest, as long as the round has
 * that many groups of it.
 */
export function placeFaults(
  { quotas = {}, reserved }: PlaceRules,
  prompts: readonly TestPrompt[],
  steps: readonly StepReport[],
  lines: readonly ResultLine[],
  queued: ReadonlyMap<RoundId, Set<GroupId>>,
): string[] {
  const domains = new Map(prompts.map(({ id, domain = '' }) => [id, Object.hasOwn(quotas, domain) ? domain : '']));
  const faults: string[] = [];
  const cutBefore = new Set<GroupId>();
  for (const { step, roundId } of steps) {
    const trained = new Set(lines.filter((line) => line.roundId === roundId).map(({ promptId }) => promptId));
    const needed = trained.size;
    const cut = queued.get(roundId) ?? new Set();
    const competing = new Set([...trained, ...cut]);
    if (reserved) {
      for (const groupId of [...competing].filter((one) => cutBefore.has(one))) {
        competing.delete(groupId);
        if (!trained.delete(groupId)) faults.push(`step ${step}: ${groupId} was taken, and cut again`);
      }
    }
    // A last step needs fewer groups than the quotas have places.
    const total = Math.max(needed, sumCounts(quotas));
    const shares = sharePlaces(quotas, total, trained.size);
    const rest = trained.size - sumCounts(shares);
    const countGroups = (groups: Iterable<GroupId>, domain: string) =>
      [...groups].filter((groupId) => domains.get(groupId) === domain).length;
    for (const [domain, share] of [...Object.entries(shares), ['', rest] as const]) {
      const least = Math.min(share, countGroups(competing, domain));
      const count = countGroups(trained, domain);
      if (count < least) faults.push(`step ${step}: ${count} groups of domain '${domain}', not ${least}`);
    }
    for (const groupId of cut) cutBefore.add(groupId);
  }
  return faults;
}

function sumCounts(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}
