import { Controller } from '@nestjs/common';
import { AuditPoolRequest, DeletePoolRequest } from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { AuditService } from '../upkeep/audit.service';
import { DeletionService } from './deletion.service';

/** The operations `pool.delete` and `pool.audit`; the load-balancer has the others of `pool.*`. */
@Controller()
export class PoolController {
  constructor(
    private readonly deletions: DeletionService,
    private readonly audits: AuditService,
  ) {}

  @Operation('pool.delete')
  delete({ force = false }: DeletePoolRequest, { pool }: MessageContext) {
    return this.deletions.deletePool(pool, force);
  }

  @Operation('pool.audit')
  audit(_body: AuditPoolRequest, { pool }: MessageContext) {
    return this.audits.audit(pool);
  }
}
