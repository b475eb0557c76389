import { Injectable } from '@nestjs/common';
import { type AuditPoolReply, LIMITS, type PoolName } from '@broomwagon/contracts';
import { PoolAudit } from '@broomwagon/state';

/** Audits of the counts on request. An audit reads a whole pool, so each pool has one at a time in a replica. */
@Injectable()
export class AuditService {
  private readonly running = new Map<PoolName, Promise<AuditPoolReply>>();

  constructor(private readonly audits: PoolAudit) {}

  /** A call during an audit gets its result. @throws BroomwagonError UNAVAILABLE */
  audit(pool: PoolName): Promise<AuditPoolReply> {
    let running = this.running.get(pool);
    if (running === undefined) {
      running = this.run(pool).finally(() => this.running.delete(pool));
      this.running.set(pool, running);
    }
    return running;
  }

  private async run(pool: PoolName): Promise<AuditPoolReply> {
    const { balanced, findings, counts, unproven } = await this.audits.run(pool);
    return {
      balanced,
      findings: findings
        .slice(0, LIMITS.page)
        .map(({ check, where, says }) => ({ check, message: `${where}: ${says}` })),
      findingCount: findings.length,
      counts: { ...counts },
      unproven: unproven.slice(0, LIMITS.page),
    };
  }
}
