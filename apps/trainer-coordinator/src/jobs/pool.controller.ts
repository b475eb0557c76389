import { Controller } from '@nestjs/common';
import { DeletePoolRequest } from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { DeletionService } from './deletion.service';

/** The operation `pool.delete`; the load-balancer has the others of `pool.*`. */
@Controller()
export class PoolController {
  constructor(private readonly deletions: DeletionService) {}

  @Operation('pool.delete')
  delete({ force = false }: DeletePoolRequest, { pool }: MessageContext) {
    return this.deletions.deletePool(pool, force);
  }
}
