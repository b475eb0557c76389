import { Controller } from '@nestjs/common';
import { AuditPoolRequest, DeletePoolRequest, PoolLedgerRequest } from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { LedgerService } from '../ledger/ledger.service';
import { AuditService } from '../upkeep/audit.service';
import { DeletionService } from './deletion.service';

/**
 * The operations `pool.delete`, `pool.audit` and `pool.ledger`. The load-balancer has the other operations `pool.*`.
 */
@Controller()
export class PoolController {
  constructor(
    private readonly deletions: DeletionService,
    private readonly audits: AuditService,
    private readonly ledgers: LedgerService,
  ) {}

  @Operation('pool.delete')
  delete({ force = false }: DeletePoolRequest, { pool }: MessageContext) {
    return this.deletions.deletePool(pool, force);
  }

  @Operation('pool.audit')
  audit(_body: AuditPoolRequest, { pool }: MessageContext) {
    return this.audits.audit(pool);
  }

  @Operation('pool.ledger')
  ledger(_body: PoolLedgerRequest, { pool }: MessageContext) {
    return this.ledgers.ofPool(pool);
  }
}
