import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import {
  BeginWeightsRequest,
  CommitWeightsRequest,
  patternOf,
  RollbackWeightsRequest,
  WeightsStatusRequest,
  type WeightsStatusReply,
  type WeightSyncReply,
} from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { WeightStore } from '@broomwagon/state';
import { WeightSyncService } from './weight-sync.service';

/** The operations `weights.*`. */
@Controller()
export class WeightsController {
  constructor(
    private readonly syncs: WeightSyncService,
    private readonly store: WeightStore,
  ) {}

  @MessagePattern(patternOf('weights.begin'))
  begin(
    @Payload(new ContractPipe(BeginWeightsRequest)) body: BeginWeightsRequest,
    @Ctx() context: MessageContext,
  ): Promise<WeightSyncReply> {
    return this.syncs.begin(context.pool, body);
  }

  @MessagePattern(patternOf('weights.commit'))
  commit(
    @Payload(new ContractPipe(CommitWeightsRequest)) body: CommitWeightsRequest,
    @Ctx() context: MessageContext,
  ): Promise<WeightSyncReply> {
    return this.syncs.end(context.pool, body, 'committed');
  }

  @MessagePattern(patternOf('weights.rollback'))
  rollback(
    @Payload(new ContractPipe(RollbackWeightsRequest)) body: RollbackWeightsRequest,
    @Ctx() context: MessageContext,
  ): Promise<WeightSyncReply> {
    return this.syncs.end(context.pool, body, 'rolled-back');
  }

  @MessagePattern(patternOf('weights.status'))
  status(
    @Payload(new ContractPipe(WeightsStatusRequest)) body: WeightsStatusRequest,
    @Ctx() context: MessageContext,
  ): Promise<WeightsStatusReply> {
    return this.store.status(context.pool, body.syncId ?? undefined, body.cursor ?? undefined, body.stamp ?? undefined);
  }
}
