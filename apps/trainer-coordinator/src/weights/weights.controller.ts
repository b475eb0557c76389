import { Controller } from '@nestjs/common';
import {
  BeginWeightsRequest,
  CommitWeightsRequest,
  RollbackWeightsRequest,
  WeightsStatusRequest,
} from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { WeightStore } from '@broomwagon/state';
import { WeightSyncService } from './weight-sync.service';

@Controller()
export class WeightsController {
  constructor(
    private readonly syncs: WeightSyncService,
    private readonly store: WeightStore,
  ) {}

  @Operation('weights.begin')
  begin(body: BeginWeightsRequest, { pool }: MessageContext) {
    return this.syncs.begin(pool, body);
  }

  @Operation('weights.commit')
  commit(body: CommitWeightsRequest, { pool }: MessageContext) {
    return this.syncs.end(pool, body, 'committed');
  }

  @Operation('weights.rollback')
  rollback(body: RollbackWeightsRequest, { pool }: MessageContext) {
    return this.syncs.end(pool, body, 'rolled-back');
  }

  @Operation('weights.status')
  status(body: WeightsStatusRequest, { pool }: MessageContext) {
    return this.store.status(pool, body);
  }
}
