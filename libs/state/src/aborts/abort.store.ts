import { Injectable } from '@nestjs/common';
import {
  sortTexts,
  type PoolName,
  type AbortResult,
  type AbortScope,
  type Epoch,
  type GroupId,
  type JobId,
  type LeaseId,
  type RequestId,
  type RoundId,
  type ServerId,
  type WorkerId,
} from '@broomwagon/contracts';
import { transition } from '../library/function-runner';
import { splitPages } from '../library/lists';
import { createStoreClass } from '../library/store-of';
import type { AttemptFence } from '../requests/request.store';

export type AbortSelector =
  | { requestIds: readonly RequestId[]; refuseAcquiresMs?: number; scope?: AbortScope }
  | { sessionId: string; scope?: AbortScope }
  | { groupId: GroupId; job: JobId }
  | { workerId: WorkerId; scope?: AbortScope }
  | { serverId: ServerId; scope?: AbortScope }
  | { roundId: RoundId; job: JobId }
  | { job: JobId }
  | { all: true };

export interface BeginAbortArgs {
  abortId: string;
  selector: AbortSelector;
  reason: string;
  /** How long the result, tombstones and dropped groups are kept, milliseconds. */
  keptMs: number;
}

/** A lease of a caller that only routes. The holder must end the call and release the lease. */
export interface LeaseFence extends Omit<AttemptFence, 'attempt'> {
  leaseId: LeaseId;
}

/** An epoch of a server that is to be expired. */
export interface ServerFence {
  serverId: ServerId;
  epoch: Epoch;
}
export type RunningLease = { requestId: RequestId } & ServerFence;
/**
 * Attempts and leases to end without confirmation by their holders. `fenced`: the epoch of the server on which the
 * attempt ran is expired.
 */
export interface OverdueArgs {
  attempts: (Pick<AttemptFence, 'requestId' | 'attempt'> & { fenced: boolean })[];
  leaseIds: LeaseId[];
}

/** Attempts and leases whose holders are sent an abort. */
export interface AbortCommands {
  aborts: AttemptFence[];
  leases: LeaseFence[];
}
export interface SelectPage extends AbortCommands {
  /** Replies to parked acquires, to send to their callers. */
  answers: { acquireId: string; replyTo: string; error: 'ABORTED' }[];
  more: boolean;
}
/** Positions in the lists of groups and of leases. */
type AbortCursor = { groups: number; leases: number };
export interface RepeatPage extends AbortCommands {
  /** Attempts whose holders are live and have not confirmed the abort within the deadline. */
  overdue: Pick<AttemptFence, 'requestId' | 'attempt'>[];
  /** Servers of the leases of the overdue requests. */
  overdueServers: RunningLease[];
  overdueLeases: ({ leaseId: LeaseId } & ServerFence)[];
  cursor?: AbortCursor;
}
export interface AbortResultsPage {
  results: AbortResult[];
  /** Results of the page that are not confirmed. */
  aborting: number;
  cursor?: number;
}

interface BeginScriptArgs extends Omit<BeginAbortArgs, 'selector'> {
  selector: string;
  work: object[];
  flag?: 'round' | 'job' | 'pool';
  job?: string;
  roundId?: string;
}

const begin = transition<BeginScriptArgs, { selecting: boolean }>('aborts/begin');
const endOverdue = transition<OverdueArgs, { ended: number }>('aborts/end-overdue');
/** Maximum attempts or leases that one script ends. */
const OVERDUE_PER_SCRIPT = 32;

/**
 * An abort is recorded first. Then its requests and leases are selected in pages. Then their holders are sent the abort
 * repeatedly until each has confirmed. Any replica may repeat or continue each step.
 */
@Injectable()
export class AbortStore extends createStoreClass({
  /** Selects one page; `more`: call again. */
  select: transition<{ abortId: string }, SelectPage>('aborts/select'),
  /** One page of the requests that an abort has selected, with their present outcomes. */
  results: transition<{ abortId: string; cursor: number; limit: number }, AbortResultsPage>('aborts/results'),
  /** One page of the aborts that are not confirmed, to send again. */
  repeat: transition<{ cursor?: AbortCursor; deadlineMs: number }, RepeatPage>('aborts/repeat'),
  /** Deletes one page of dropped groups that have been kept for `keptMs`. */
  forget: transition<object, { more: boolean }>('aborts/forget'),
}) {
  /** Records an abort. `selecting`: pages must be selected. @throws VALIDATION_FAILED: another abort has used the id */
  begin(pool: PoolName, args: BeginAbortArgs): Promise<{ selecting: boolean }> {
    const { abortId, selector, reason, keptMs } = args;
    return this.runner.run(begin, pool, {
      ...planSelection(selector),
      abortId,
      reason,
      keptMs,
      selector: JSON.stringify(selector, (_, value: unknown) =>
        Array.isArray(value) ? sortTexts(value as string[]) : value,
      ),
    });
  }

  /** Ends overdue attempts and leases without their holders, page by page. @returns number of ended requests */
  async endOverdue(pool: PoolName, { attempts, leaseIds }: OverdueArgs): Promise<{ ended: number }> {
    let ended = 0;
    for (const page of splitPages(attempts, OVERDUE_PER_SCRIPT)) {
      ended += (await this.runner.run(endOverdue, pool, { attempts: page, leaseIds: [] })).ended;
    }
    for (const page of splitPages(leaseIds, OVERDUE_PER_SCRIPT)) {
      await this.runner.run(endOverdue, pool, { attempts: [], leaseIds: page });
    }
    return { ended };
  }
}

/** Steps of the selection (aborts/select.lua), and the flag that aborts all groups of a round, a job or the pool. */
function planSelection(selector: AbortSelector): Pick<BeginScriptArgs, 'work' | 'flag' | 'job' | 'roundId'> {
  const parked = { kind: 'waiters', ofAbortedGroups: true };
  if ('requestIds' in selector) {
    const { requestIds, refuseAcquiresMs, scope } = selector;
    return { work: [{ kind: 'requests', ids: [...new Set(requestIds)], refuseAcquiresMs, scope }, parked] };
  }
  const steps = (kinds: string[], more?: object) => kinds.map((kind) => ({ kind, ...selector, ...more }));
  if ('sessionId' in selector) return { work: steps(['waiters', 'leases'], { known: true }) };
  if ('serverId' in selector) return { work: steps(['leases'], { known: true }) };
  if ('workerId' in selector) return { work: steps(['attempts', 'waiters', 'leases']) };
  if ('groupId' in selector) return { work: [...steps(['group']), parked] };
  if ('roundId' in selector) return { work: [...steps(['round']), parked], flag: 'round', ...selector };
  if ('job' in selector) return { work: [...steps(['job']), parked], flag: 'job', ...selector };
  return { work: [{ kind: 'jobs' }, { kind: 'waiters' }, { kind: 'leases' }], flag: 'pool' };
}
