import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import {
  AcquireManyRequest,
  AcquireRequest,
  FinishSessionRequest,
  LoadBalancerStatusRequest,
  patternOf,
  ReleaseManyRequest,
  ReleaseRequest,
  TransferLeaseRequest,
  type ReplyOf,
} from '@broomwagon/contracts';
import { ContractPipe, MessageContext, type PARKED } from '@broomwagon/messaging';
import { RoutingStore } from '@broomwagon/state';
import { AcquireService } from './acquire.service';
import { ReleaseService } from './release.service';
import { StatusService } from './status.service';
import { TransferService } from './transfer.service';

/** The operations `lb.*`. */
@Controller()
export class LoadBalancerController {
  constructor(
    private readonly acquires: AcquireService,
    private readonly releases: ReleaseService,
    private readonly transfers: TransferService,
    private readonly statuses: StatusService,
    private readonly store: RoutingStore,
  ) {}

  @MessagePattern(patternOf('lb.acquire'))
  acquire(
    @Payload(new ContractPipe(AcquireRequest)) body: AcquireRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'lb.acquire'> | typeof PARKED> {
    return this.acquires.acquire(context.pool, body, context.replyTo);
  }

  @MessagePattern(patternOf('lb.acquire-many'))
  acquireMany(
    @Payload(new ContractPipe(AcquireManyRequest)) body: AcquireManyRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'lb.acquire-many'>> {
    return this.acquires.acquireMany(context.pool, body);
  }

  @MessagePattern(patternOf('lb.release'))
  release(
    @Payload(new ContractPipe(ReleaseRequest)) body: ReleaseRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'lb.release'>> {
    return this.releases.release(context.pool, body);
  }

  @MessagePattern(patternOf('lb.release-many'))
  releaseMany(
    @Payload(new ContractPipe(ReleaseManyRequest)) body: ReleaseManyRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'lb.release-many'>> {
    return this.releases.releaseMany(context.pool, body.releases);
  }

  @MessagePattern(patternOf('lb.transfer'))
  transfer(
    @Payload(new ContractPipe(TransferLeaseRequest)) body: TransferLeaseRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'lb.transfer'>> {
    return this.transfers.transfer(context.pool, body);
  }

  @MessagePattern(patternOf('lb.status'))
  status(
    @Payload(new ContractPipe(LoadBalancerStatusRequest)) _body: LoadBalancerStatusRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'lb.status'>> {
    return this.statuses.status(context.pool);
  }

  @MessagePattern(patternOf('lb.finish-session'))
  finishSession(
    @Payload(new ContractPipe(FinishSessionRequest)) body: FinishSessionRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'lb.finish-session'>> {
    return this.store.finishSession(context.pool, body.sessionId);
  }
}
