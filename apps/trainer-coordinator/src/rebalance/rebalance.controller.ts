import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import {
  ConfigureRebalanceRequest,
  ExecuteRebalanceRequest,
  patternOf,
  PlanRebalanceRequest,
  RebalanceStatusRequest,
  type RebalanceSettings,
  type RebalanceStatus,
} from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { RebalanceService } from './rebalance.service';

/** The operations `rebalance.*`. */
@Controller()
export class RebalanceController {
  constructor(private readonly rebalance: RebalanceService) {}

  @MessagePattern(patternOf('rebalance.configure'))
  configure(
    @Payload(new ContractPipe(ConfigureRebalanceRequest)) body: ConfigureRebalanceRequest,
    @Ctx() context: MessageContext,
  ): Promise<RebalanceSettings> {
    return this.rebalance.configure(context.pool, body);
  }

  @MessagePattern(patternOf('rebalance.plan'))
  plan(
    @Payload(new ContractPipe(PlanRebalanceRequest)) body: PlanRebalanceRequest,
    @Ctx() context: MessageContext,
  ): Promise<RebalanceStatus> {
    return this.rebalance.plan(context.pool, body);
  }

  @MessagePattern(patternOf('rebalance.execute'))
  execute(
    @Payload(new ContractPipe(ExecuteRebalanceRequest)) body: ExecuteRebalanceRequest,
    @Ctx() context: MessageContext,
  ): Promise<RebalanceStatus> {
    return this.rebalance.execute(context.pool, body);
  }

  @MessagePattern(patternOf('rebalance.status'))
  status(
    @Payload(new ContractPipe(RebalanceStatusRequest)) body: RebalanceStatusRequest,
    @Ctx() context: MessageContext,
  ): Promise<RebalanceStatus> {
    return this.rebalance.status(context.pool, body);
  }
}
