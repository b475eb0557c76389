import { Injectable } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { transition } from '../library/function-runner';
import { scanPages } from '../library/scan-pages';
import { storeOf } from '../library/store-of';
import type {
  AbortResultsPage,
  AbortSelector,
  BeginAbortArgs,
  OverdueArgs,
  RepeatPage,
  RunningLease,
  SelectPage,
} from './abort.types';

interface BeginScriptArgs extends Omit<BeginAbortArgs, 'selector'> {
  selector: string;
  work: object[];
  flag?: 'round' | 'job' | 'pool';
  job?: string;
  roundId?: string;
}

const begin = transition<BeginScriptArgs, { selecting: boolean }>('aborts/begin');
const leasesOf = transition<{ requestIds: string[]; cursor: string }, { leases: RunningLease[]; cursor: string }>(
  'aborts/leases-of',
);
const endOverdue = transition<OverdueArgs, { ended: number }>('aborts/end-overdue');
/** What one script ends. */
const OVERDUE_PER_SCRIPT = 32;

/**
 * Aborts: first the intent is recorded, then what it means is selected in pages, then the holders are told again and
 * again until each has confirmed. Safe to repeat; any replica can continue.
 */
@Injectable()
export class AbortStore extends storeOf({
  /** Selects one page; `more`: call again. */
  select: transition<{ abortId: string }, SelectPage>('aborts/select'),
  /** What it has selected, as it stands now. */
  results: transition<{ abortId: string; cursor: number; limit: number }, AbortResultsPage>('aborts/results'),
  /** One page of what is not confirmed, to be told again. */
  repeat: transition<{ groupCursor: number; leaseCursor: number; deadlineMs: number }, RepeatPage>('aborts/repeat'),
  /** Deletes one page of dropped groups whose life is over. */
  forget: transition<object, { more: boolean }>('aborts/forget'),
}) {
  /**
   * Records the intent. `selecting`: pages are to be selected. @throws VALIDATION_FAILED: the id means something else
   */
  begin(pool: PoolName, args: BeginAbortArgs): Promise<{ selecting: boolean }> {
    const { abortId, selector, reason, keptMs } = args;
    return this.runner.run(begin, pool, {
      ...planSelection(selector),
      abortId,
      reason,
      keptMs,
      selector: JSON.stringify(selector, (_, value: unknown) => (Array.isArray(value) ? [...value].sort() : value)),
    });
  }

  /** The leases under which these requests run; looks at all leases of the pool, in pages. */
  async leasesOf(pool: PoolName, requestIds: string[]): Promise<RunningLease[]> {
    const found: RunningLease[] = [];
    const pages = scanPages((cursor) => this.runner.run(leasesOf, pool, { requestIds, cursor }));
    for await (const { leases } of pages) found.push(...leases);
    return found;
  }

  /** Ends what is overdue without its holders, page by page. @returns requests that have ended */
  async endOverdue(pool: PoolName, { attempts, leaseIds }: OverdueArgs): Promise<{ ended: number }> {
    let ended = 0;
    for (let from = 0; from < Math.max(attempts.length, leaseIds.length); from += OVERDUE_PER_SCRIPT) {
      const upTo = from + OVERDUE_PER_SCRIPT;
      const page = { attempts: attempts.slice(from, upTo), leaseIds: leaseIds.slice(from, upTo) };
      ended += (await this.runner.run(endOverdue, pool, page)).ended;
    }
    return { ended };
  }
}

/** The steps of the selection, see aborts/select.lua, and whose flag aborts all groups at once. */
function planSelection(selector: AbortSelector): Pick<BeginScriptArgs, 'work' | 'flag' | 'job' | 'roundId'> {
  const parked = { kind: 'waiters', ofAbortedGroups: true };
  if ('requestIds' in selector) {
    const { requestIds, refuseAcquiresMs, scope } = selector;
    return { work: [{ kind: 'requests', ids: [...new Set(requestIds)], refuseAcquiresMs, scope }, parked] };
  }
  if ('sessionId' in selector) {
    return {
      work: [
        { kind: 'waiters', ...selector, known: true },
        { kind: 'leases', ...selector, known: true },
      ],
    };
  }
  if ('serverId' in selector) return { work: [{ kind: 'leases', ...selector, known: true }] };
  if ('workerId' in selector) {
    return {
      work: [
        { kind: 'attempts', ...selector },
        { kind: 'waiters', ...selector },
        { kind: 'leases', ...selector },
      ],
    };
  }
  if ('groupId' in selector) return { work: [{ kind: 'group', ...selector }, parked] };
  if ('roundId' in selector) return { work: [{ kind: 'round', ...selector }, parked], flag: 'round', ...selector };
  if ('job' in selector) return { work: [{ kind: 'job', ...selector }, parked], flag: 'job', ...selector };
  return { work: [{ kind: 'jobs' }, { kind: 'waiters' }, { kind: 'leases' }], flag: 'pool' };
}
