import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { ScriptRunner } from '../scripts/script-runner';
import { BooksAudit } from './books-audit';
import { confirmed, type Finding } from './findings';
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
  counts: RoutingCounts & { jobs: number; requests: number };
  /** Jobs whose requests never stood still for a recount: their sums are neither proven nor wrong. */
  unproven: string[];
}

/**
 * Proves the books of a pool on a live system: leases = sets of servers = sets of workers, indexes, sessions, waiters,
 * and for each job submitted = the sum of its states. Reads in pages; blocks nobody.
 */
export class PoolAudit {
  private readonly routing: RoutingAudit;
  private readonly books: BooksAudit;

  constructor(redis: Redis, runner: ScriptRunner) {
    this.routing = new RoutingAudit(redis, runner);
    this.books = new BooksAudit(redis, runner);
  }

  /** @param options.repair mends indexes from the leases, which are the truth; books of jobs are never changed */
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

  private async prove(pool: string): Promise<Pick<AuditReport, 'findings' | 'unproven' | 'counts'>> {
    let last = await this.look(pool);
    for (let looks = 1; looks < MOST_LOOKS; looks++) {
      if (last.findings.length === 0 && last.unproven.length === 0) break;
      await sleep(PAUSE_MS);
      const next = await this.look(pool);
      const both = confirmed(last.findings, next.findings);
      const findings = await this.routing.withoutBusySessions(pool, both);
      if (findings.length > 0 && next.unproven.length === 0) return { ...next, findings };
      if (looks === MOST_LOOKS - 1) return { ...next, findings };
      last = next;
    }
    return last;
  }

  private async look(pool: string): Promise<Pick<AuditReport, 'findings' | 'unproven' | 'counts'>> {
    const [{ findings, counts }, books] = [await this.routing.look(pool, false), await this.books.look(pool)];
    return {
      findings: [...findings, ...books.findings],
      unproven: books.busyJobs,
      counts: { ...counts, jobs: books.jobs, requests: books.requests },
    };
  }

  /** Entries are judged and mended in one script each; sums only when they are still as two looks have seen them. */
  private async repair(pool: string, known: readonly Finding[]): Promise<Finding[]> {
    const look = await this.routing.look(pool, true);
    const repaired = look.findings.filter((finding) => finding.repaired);
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
