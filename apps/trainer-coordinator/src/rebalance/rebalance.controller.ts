import { Controller } from '@nestjs/common';
import {
  ConfigureRebalanceRequest,
  ExecuteRebalanceRequest,
  PlanRebalanceRequest,
  RebalanceStatusRequest,
} from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { RebalanceService } from './rebalance.service';

@Controller()
export class RebalanceController {
  constructor(private readonly rebalance: RebalanceService) {}

  @Operation('rebalance.configure')
  configure(body: ConfigureRebalanceRequest, { pool }: MessageContext) {
    return this.rebalance.configure(pool, body);
  }

  @Operation('rebalance.plan')
  plan(body: PlanRebalanceRequest, { pool }: MessageContext) {
    return this.rebalance.plan(pool, body);
  }

  @Operation('rebalance.execute')
  execute(body: ExecuteRebalanceRequest, { pool }: MessageContext) {
    return this.rebalance.execute(pool, body);
  }

  @Operation('rebalance.status')
  status(body: RebalanceStatusRequest, { pool }: MessageContext) {
    return this.rebalance.status(pool, body);
  }
}
