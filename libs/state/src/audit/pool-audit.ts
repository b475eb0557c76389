import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { FunctionRunner } from '../library/function-runner';
import type { PayloadStore } from '../payload';
import { BooksAudit, type BooksLook } from './books-audit';
import { CheckpointAudit } from './checkpoint-audit';
import { confirmed, type Finding } from './findings';
import { PayloadAudit } from './payload-audit';
import { RoundAudit } from './round-audit';
import { RoutingAudit, type RoutingCounts, type RoutingLook } from './routing-audit';

/** Looks at most: a finding needs two that agree, and busy jobs need one in which nothing moved. */
const MOST_LOOKS = 5;
/** Between two looks, so that what is on its way arrives. */
const PAUSE_MS = 300;

/** Outcome of an audit. */
export interface AuditReport {
  pool: string;
  /** Nothing is off. */
  balanced: boolean;
  /** What is off, seen in two looks; with `repair`, what is still off after it. */
  findings: Finding[];
  /** What was mended. */
  repaired: Finding[];
  counts: RoutingCounts & { jobs: number; requests: number; payloads: number };
  /** Jobs whose requests never stood still for a recount: their sums are neither proven nor wrong. */
  unproven: string[];
}

/**
 * Proves the books of a pool on a live system: leases = sets of servers = sets of workers, indexes, sessions, waiters,
 * for each job submitted = the sum of its states, its groups, rounds, checkpoints, and the payloads they name. Reads in pages; blocks nobody.
 */
export class PoolAudit {
  private readonly routing: RoutingAudit;
  private readonly books: BooksAudit;
  private readonly rounds: RoundAudit;
  private readonly checkpoints: CheckpointAudit;
  private readonly payloads?: PayloadAudit;

  /** @param payloads without it, references are not looked at */
  constructor(redis: Redis, runner: FunctionRunner, payloads?: PayloadStore) {
    this.rounds = new RoundAudit(runner);
    this.checkpoints = new CheckpointAudit(redis, runner);
    this.payloads = payloads && new PayloadAudit(redis, runner, payloads);
    this.routing = new RoutingAudit(redis, runner);
    this.books = new BooksAudit(redis, runner);
  }

  /**
   * @param options.repair mends indexes and counts from the leases and requests, which are the truth
   */
  async run(pool: string, options: { repair?: boolean } = {}): Promise<AuditReport> {
    let proof = await this.prove(pool);
    let repaired: Finding[] = [];
    if (options.repair === true && proof.findings.length > 0) {
      repaired = await this.repair(pool, proof.findings);
      proof = await this.prove(pool);
    }
    const { findings, unproven, counts } = proof;
    return { pool, balanced: findings.length === 0, findings, repaired, counts, unproven };
  }

  /**
   * Counts jobs anew, all in one look at the keys of the pool, and mends what is off, as {@link run} does; for jobs that a
   * transition has marked.
   * @returns what was mended, and the jobs that stay marked: another recount of them is under way, this one was given
   *   up, or something was found lost meanwhile
   */
  async recount(pool: string, jobs: readonly string[]): Promise<{ mended: Finding[]; again: string[] }> {
    const { findings, recounts } = await this.books.repair(pool, jobs);
    const again: string[] = [];
    for (const job of jobs) {
      findings.push(...(await this.rounds.look(pool, job, true)));
      const id = recounts.get(job);
      if (id === undefined || !(await this.books.recounts.end(pool, job, id))) again.push(job);
    }
    return { mended: findings.filter(({ repaired }) => repaired), again };
  }

  /** Jobs that are to be counted anew, some of them. @throws BroomwagonError UNAVAILABLE */
  markedJobs(pool: string): Promise<string[]> {
    return this.books.marked(pool);
  }

  /** Marks the jobs that are to be counted anew since Redis has lost something. @param generation that began with it */
  markCounts(pool: string, generation: string): Promise<void> {
    return this.books.mark(pool, generation);
  }

  private async prove(pool: string): Promise<Pick<AuditReport, 'findings' | 'unproven' | 'counts'>> {
    let last = await this.look(pool);
    for (let looks = 1; looks < MOST_LOOKS; looks++) {
      if (last.findings.length === 0 && last.unproven.length === 0) break;
      await sleep(PAUSE_MS);
      const next = await this.look(pool);
      const both = confirmed(last.findings, next.findings);
      const findings = await this.routing.withoutBusy(pool, both);
      if (findings.length > 0 && next.unproven.length === 0) return { ...next, findings };
      if (looks === MOST_LOOKS - 1) return { ...next, findings };
      last = next;
    }
    return last;
  }

  private async look(pool: string): Promise<Pick<AuditReport, 'findings' | 'unproven' | 'counts'>> {
    const [{ findings, counts }, jobs] = [await this.routing.look(pool, false), await this.lookAtJobs(pool, false)];
    return {
      findings: [...findings, ...jobs.findings],
      unproven: jobs.busyJobs,
      counts: { ...counts, jobs: jobs.jobs.length, requests: jobs.requests, payloads: jobs.payloads },
    };
  }

  private async lookAtJobs(pool: string, repair: boolean): Promise<BooksLook & { payloads: number }> {
    const look = { ...(await this.books.look(pool, repair)), payloads: 0 };
    for (const job of look.jobs) {
      look.findings.push(...(await this.rounds.look(pool, job, repair)));
      const recountId = look.recounts.get(job);
      if (recountId !== undefined) await this.books.recounts.end(pool, job, recountId);
      const named: [string, string][] = [];
      look.findings.push(...(await this.checkpoints.look(pool, job, repair, (owner, ref) => named.push([owner, ref]))));
      if (this.payloads === undefined) continue;
      const { findings, references } = await this.payloads.look(pool, job, named);
      look.findings.push(...findings);
      look.payloads += references;
    }
    return look;
  }

  /** Entries are judged and mended in one script each; sums only when they are still as two looks have seen them. */
  private async repair(pool: string, known: readonly Finding[]): Promise<Finding[]> {
    const look = await this.routing.look(pool, true);
    const jobs = await this.lookAtJobs(pool, true);
    const repaired = [...look.findings, ...jobs.findings].filter((finding) => finding.repaired);
    return [...repaired, ...(await this.mendSums(known, look))];
  }

  private async mendSums(known: readonly Finding[], look: RoutingLook): Promise<Finding[]> {
    const mended: Finding[] = [];
    for (const { finding, mend } of look.mends) {
      if (confirmed(known, [finding]).length === 0) continue;
      if ((await mend()).mended) mended.push({ ...finding, repaired: true });
    }
    return mended;
  }
}
