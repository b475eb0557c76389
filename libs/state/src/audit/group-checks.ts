import type { Epoch, JobId, WorkerId } from '@broomwagon/contracts';
import { type Discrepancy, toList, type PoolLook, type Step } from './pool-look';

interface RequestView {
  state: string;
  workerId: WorkerId;
  workerEpoch: Epoch;
  isLive: boolean;
  wasClaimed: boolean;
  isQueued: boolean;
  isWithWorker: boolean;
}
/** A group with its requests, in their order; see audit/views.lua. */
interface GroupView {
  /** Whether the long-tail queue has the group. */
  isQueued: boolean;
  /** State of the group; absent for a group that is gone. */
  state?: string;
  live: number;
  finished: number;
  requests: unknown;
  /** Score in the long-tail queue, for an unfinished group. */
  place?: string;
}

/**
 * Checks the groups of these jobs against their requests: the counters, the long-tail queue, the pending queue and the
 * attempts of workers. The state of a request is authoritative. A repair ends a group that lacks a request.
 */
export async function checkGroups(look: PoolLook, jobs: readonly JobId[]): Promise<void> {
  const compare = (groups: [JobId, string][]) =>
    look.compare(
      groups,
      (group) => [['group', ...group]],
      (group, [view]) => compareGroup(view as GroupView, ...group),
    );
  const known = new Map(jobs.map((job) => [job, new Set<string>()]));
  const prefix = jobs.length === 1 ? `${jobs[0]}/` : '';
  for await (const names of look.keysBelow(`group:${prefix}`)) {
    const groups = names.map((name) => `${prefix}${name}`.split('/') as [JobId, string]);
    await compare(groups.filter(([job, groupId]) => known.get(job)?.has(groupId) === false));
    for (const [job, groupId] of groups) known.get(job)?.add(groupId);
  }
  for (const [job, groups] of known) {
    for await (const queued of look.names(['longtail', job], 'ZSCAN')) {
      await compare(queued.filter((groupId) => !groups.has(groupId)).map((groupId) => [job, groupId]));
    }
  }
}

function compareGroup(group: GroupView, job: JobId, groupId: string): Discrepancy[] {
  const where = `${job}/${groupId}`;
  const { isQueued, state, place } = group;
  if (state === undefined) {
    const detail = 'in the long-tail queue, but the group is missing';
    return isQueued ? [{ check: 'longtail-without-group', where, detail, steps: [['lose_queued', job, groupId]] }] : [];
  }
  const requests = toList<RequestView | false>(group.requests);
  const missing = requests.flatMap((request, index) => (request ? [] : [`${where}/${index}`]));
  if (missing.length > 0) {
    // Nothing else of the group is repaired, because its end changes its counters and queues.
    return missing.map((id, position) => ({
      check: 'request-missing',
      where: id,
      steps: position === 0 ? [['lose_group', job, groupId]] : [],
    }));
  }
  const there = requests as RequestView[];
  const found = there.flatMap((request, index) => compareRequest(request, job, `${where}/${index}`));
  const live = there.filter(({ isLive }) => isLive).length;
  const finished = there.filter((request) => request.state === 'finished').length;
  if (group.live !== live || group.finished !== finished) {
    const detail = `live ${group.live}, counted ${live}; finished ${group.finished}, counted ${finished}`;
    const steps: Step[] = [['set_group', job, groupId, { live, finished }]];
    found.push({ check: 'group-counters', where, detail, steps });
  }
  if (isQueued !== (state === 'unfinished')) {
    const change = isQueued ? ['ZREM'] : ['ZADD', place];
    const [command, ...score] = change;
    const steps: Step[] = [['call', command, ['longtail', job], ...score, groupId]];
    const isMendable = isQueued || place !== undefined;
    found.push({ check: 'group-longtail-queue', where, detail: state, steps: isMendable ? steps : undefined });
  }
  return found;
}

function compareRequest(request: RequestView, job: JobId, where: string): Discrepancy[] {
  const { state: detail, workerId, workerEpoch } = request;
  const found: Discrepancy[] = [];
  if (!request.isWithWorker) {
    const steps: Step[] = [['call', 'SADD', ['workerAttempts', workerId, workerEpoch], where]];
    found.push({ check: 'request-not-with-worker', where, detail, steps });
  }
  if (request.isQueued !== (detail === 'pending')) {
    const leave: Step = ['call', 'ZREM', ['pending', job], where];
    const step: Step = request.isQueued ? leave : ['enqueue', job, where, request.wasClaimed];
    found.push({ check: 'request-pending-queue', where, detail, steps: [step] });
  }
  return found;
}
