import { setTimeout as sleep } from 'node:timers/promises';
import { type JobId, sortTexts } from '@broomwagon/contracts';
import type { RedisClient } from '../redis-cluster';
import type { FunctionRunner } from '../library/function-runner';
import type { PayloadStore } from '../payload';
import { awaitAnswer } from '../redis';
import { countRequests, compareCounts } from './counts-audit';
import { checkSnapshots } from './snapshot-checks';
import { confirmed, type Finding } from './findings';
import { checkGroups } from './group-checks';
import { JobRecounts, type Recount } from './job-recounts';
import { checkPayloads } from './payload-checks';
import { AuditDeadline, toList, PoolLook } from './pool-look';
import { checkRounds } from './round-checks';
import { auditRouting, type RoutingCounts } from './routing-audit';

/** Maximum looks of an audit. A finding needs two looks that agree; a busy job needs one look without a change. */
const MAX_LOOKS = 5;
const PAUSE_MS = 300;
/** Jobs whose requests are counted again in one recount. */
const MARKED_JOBS = 64;

export interface AuditReport {
  pool: string;
  /** The audit has no findings. */
  balanced: boolean;
  /** Faults seen in two looks. With `repair`, faults that remain after it. */
  findings: Finding[];
  repaired: Finding[];
  counts: Partial<RoutingCounts & { jobs: number; requests: number; payloads: number }>;
  /**
   * Jobs, and servers and workers with very many leases, that changed all the time, so that their sums are unknown.
   * Also a note when the deadline came before everything was read.
   */
  unproven: string[];
}

/** `isCut`: the deadline ended the look. */
type Proof = Pick<AuditReport, 'findings' | 'unproven' | 'counts'> & { isCut?: true };

/**
 * Proves the counts of a pool on a live system, in pages:
 * - leases equal the sets of servers and the sets of workers; indexes, sessions and waiters fit;
 * - for each job, `submitted` is the sum of its states; groups, rounds, snapshots and their payloads fit.
 */
export class PoolAudit {
  private readonly recounts: JobRecounts;

  /**
   * @param payloads absent: references to payloads are not checked
   * @param pauseMs pause between two looks, in which changes in progress can end
   */
  constructor(
    private readonly redis: RedisClient,
    private readonly runner: FunctionRunner,
    private readonly payloads?: PayloadStore,
    private readonly pauseMs = PAUSE_MS,
  ) {
    this.recounts = new JobRecounts(redis, runner);
  }

  /**
   * @param options.repair mends indexes and counts from the leases and requests
   * @param options.maxMs after this time the audit ends with the counts proven so far; a repair has no limit
   */
  async run(pool: string, options: { repair?: boolean; maxMs?: number } = {}): Promise<AuditReport> {
    let proof = await this.prove(pool, performance.now() + (options.maxMs ?? Infinity));
    let repaired: Finding[] = [];
    if (options.repair === true && proof.findings.length > 0) {
      repaired = (await this.look(pool, true)).findings.filter((finding) => finding.repaired);
      proof = await this.prove(pool);
    }
    const { findings, unproven, counts } = proof;
    return { pool, balanced: findings.length === 0, findings, repaired, counts, unproven };
  }

  /**
   * Counts marked jobs again, all in one scan of the keys of the pool, and repairs faults, as {@link run} does.
   * @returns the faults that were mended, and the jobs that stay marked: another recount of them is under way, this
   *   recount was given up, or a transition has found lost records meanwhile
   */
  async recount(pool: string, jobs: readonly JobId[]): Promise<{ mended: Finding[]; again: JobId[] }> {
    const look = new PoolLook(this.redis, this.runner, pool, true);
    const recount = await this.recountStates(look, pool, jobs);
    const again: JobId[] = [];
    for (const job of jobs) {
      await checkRounds(look, job);
      if (!(await recount.end(job))) again.push(job);
    }
    return { mended: look.findings.filter(({ repaired }) => repaired), again };
  }

  /** At most 64 of the jobs that are marked for a recount. @throws BroomwagonError UNAVAILABLE */
  markedJobs(pool: string): Promise<JobId[]> {
    return awaitAnswer(this.redis.srandmember(`${this.runner.rootKey(pool)}:jobs:miscounted`, MARKED_JOBS));
  }

  /**
   * Marks jobs for a recount, because Redis has lost writes.
   * @param generation generation of the pool that started with the loss
   */
  markCounts(pool: string, generation: string): Promise<void> {
    return this.recounts.mark(pool, generation);
  }

  private async prove(pool: string, deadlineMs = Infinity): Promise<Proof> {
    let last = await this.look(pool, false, deadlineMs);
    for (let looks = 1; looks < MAX_LOOKS; looks++) {
      if (last.isCut || (last.findings.length === 0 && last.unproven.length === 0)) break;
      await sleep(this.pauseMs);
      const next = await this.look(pool, false, deadlineMs);
      const findings = confirmed(last.findings, next.findings);
      const isWrong = findings.length > 0 && (next.isCut === true || next.unproven.length === 0);
      if (isWrong || looks === MAX_LOOKS - 1) return { ...next, findings };
      last = next.isCut ? { ...next, findings: last.findings } : next;
    }
    // A finding that no second look has confirmed may be a change in progress.
    const unconfirmed = last.findings.map(({ check, where }) => `${check} ${where}`);
    return { ...last, findings: [], unproven: [...last.unproven, ...unconfirmed] };
  }

  private async look(pool: string, repair: boolean, deadlineMs?: number): Promise<Proof> {
    const look = new PoolLook(this.redis, this.runner, pool, repair, deadlineMs);
    const counts: Proof['counts'] = {};
    try {
      await this.compareAll(look, pool, counts);
    } catch (error) {
      if (!(error instanceof AuditDeadline)) throw error;
      look.unproven.push('all that was not read before the deadline');
      return { findings: look.findings, unproven: look.unproven, counts, isCut: true };
    }
    return { findings: look.findings, unproven: look.unproven, counts };
  }

  /** Compares all state of the pool, and adds the number of objects read to `counts`. @throws AuditDeadline */
  private async compareAll(look: PoolLook, pool: string, counts: Proof['counts']): Promise<void> {
    const { repair, unproven } = look;
    Object.assign(counts, await auditRouting(look));
    const jobs = sortTexts(toList<JobId>(await look.read('SMEMBERS', 'jobs')));
    const recount = repair ? await this.recountStates(look, pool, jobs) : undefined;
    [counts.jobs, counts.requests, counts.payloads] = [0, 0, 0];
    for (const job of jobs) {
      if (!recount) {
        const counted = await countRequests(look, job);
        counts.requests += compareCounts(look, job, counted);
        if (!counted.isProven) unproven.push(`job ${job}`);
        await checkGroups(look, [job]);
      }
      await checkRounds(look, job);
      await recount?.end(job);
      const named: [owner: string, ref: string][] = [];
      await checkSnapshots(look, job, (owner, ref) => named.push([owner, ref]));
      if (this.payloads && !repair) counts.payloads += await checkPayloads(look, this.payloads, job, named);
      counts.jobs += 1;
    }
  }

  /** Mends the groups and the counts by state of these jobs. */
  private async recountStates(look: PoolLook, pool: string, jobs: readonly JobId[]): Promise<Recount> {
    // Groups are checked first, because a repair may end groups, which changes the counts.
    await checkGroups(look, jobs);
    const recount = await this.recounts.count(pool, jobs);
    for (const [job, counted] of recount.counted) compareCounts(look, job, counted);
    return recount;
  }
}
