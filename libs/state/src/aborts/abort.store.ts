import { Injectable } from '@nestjs/common';
import type { PoolName } from '@broomwagon/contracts';
import { transition, FunctionRunner } from '../library/function-runner';
import type {
  AbortResultsPage,
  AbortSelector,
  BeginAbortArgs,
  OverdueArgs,
  RepeatPage,
  RunningLease,
  SelectPage,
} from './abort.types';

interface BeginScriptArgs {
  abortId: string;
  selector: string;
  reason: string;
  keptMs: number;
  work: object[];
  flag?: 'round' | 'job' | 'pool';
  job?: string;
  roundId?: string;
}

const begin = transition<BeginScriptArgs, { selecting: boolean }>('aborts/begin');
const select = transition<{ abortId: string }, SelectPage>('aborts/select');
const results = transition<{ abortId: string; cursor: number; limit: number }, AbortResultsPage>('aborts/results');
const repeat = transition<{ groupCursor: number; leaseCursor: number; deadlineMs: number }, RepeatPage>(
  'aborts/repeat',
);
const leasesOf = transition<{ requestIds: string[]; cursor: string }, { leases: RunningLease[]; cursor: string }>(
  'aborts/leases-of',
);
const endOverdue = transition<OverdueArgs, { ended: number }>('aborts/end-overdue');
/** What one script ends. */
const OVERDUE_PER_SCRIPT = 32;
const forget = transition<object, { more: boolean }>('aborts/forget');

/**
 * Aborts: first the intent is recorded, then what it means is selected in pages, then the holders are told again and
 * again until each has confirmed. One script each, safe to repeat, for any replica to go on with. Every method throws
 * BroomwagonError UNAVAILABLE.
 */
@Injectable()
export class AbortStore {
  constructor(private readonly scripts: FunctionRunner) {}

  /**
   * Records the intent. `selecting`: pages are to be selected. @throws VALIDATION_FAILED: the id means something else
   */
  begin(pool: PoolName, args: BeginAbortArgs): Promise<{ selecting: boolean }> {
    const { abortId, selector, reason, keptMs } = args;
    return this.scripts.run(begin, pool, {
      ...planSelection(selector),
      abortId,
      reason,
      keptMs,
      selector: JSON.stringify(selector, (_, value: unknown) => (Array.isArray(value) ? [...value].sort() : value)),
    });
  }

  /** Selects one page; `more`: call again. */
  select(pool: PoolName, abortId: string): Promise<SelectPage> {
    return this.scripts.run(select, pool, { abortId });
  }

  /** What it has selected, as it stands now. */
  results(pool: PoolName, args: { abortId: string; cursor: number; limit: number }): Promise<AbortResultsPage> {
    return this.scripts.run(results, pool, args);
  }

  /** One page of what is not confirmed, to be told again. */
  repeat(pool: PoolName, args: { groupCursor: number; leaseCursor: number; deadlineMs: number }): Promise<RepeatPage> {
    return this.scripts.run(repeat, pool, args);
  }

  /** The leases under which these requests run; looks at all leases of the pool, in pages. */
  async leasesOf(pool: PoolName, requestIds: string[]): Promise<RunningLease[]> {
    const found: RunningLease[] = [];
    let cursor = '0';
    do {
      const page = await this.scripts.run(leasesOf, pool, { requestIds, cursor });
      found.push(...page.leases);
      cursor = page.cursor;
    } while (cursor !== '0');
    return found;
  }

  /** Ends what is overdue without its holders, page by page. @returns requests that have ended */
  async endOverdue(pool: PoolName, { attempts, leaseIds }: OverdueArgs): Promise<{ ended: number }> {
    let ended = 0;
    for (let from = 0; from < Math.max(attempts.length, leaseIds.length); from += OVERDUE_PER_SCRIPT) {
      const upTo = from + OVERDUE_PER_SCRIPT;
      const page = { attempts: attempts.slice(from, upTo), leaseIds: leaseIds.slice(from, upTo) };
      ended += (await this.scripts.run(endOverdue, pool, page)).ended;
    }
    return { ended };
  }

  /** Deletes one page of dropped groups whose life is over. */
  forget(pool: PoolName): Promise<{ more: boolean }> {
    return this.scripts.run(forget, pool, {});
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
