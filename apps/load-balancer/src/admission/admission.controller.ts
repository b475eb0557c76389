import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import {
  CancelAcquireRequest,
  patternOf,
  PausePoolRequest,
  ResumePoolRequest,
  type PausePoolReply,
  type ReplyOf,
} from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { leaseIdOf, PoolDirectory, RoutingStore } from '@broomwagon/state';
import { WaiterAnswersService } from '../acquire/waiter-answers.service';

/** Who is let in: `pool.pause`, `pool.resume` and `lb.cancel`. */
@Controller()
export class AdmissionController {
  constructor(
    private readonly store: RoutingStore,
    private readonly pools: PoolDirectory,
    private readonly waiters: WaiterAnswersService,
  ) {}

  @MessagePattern(patternOf('pool.pause'))
  pause(
    @Payload(new ContractPipe(PausePoolRequest)) _body: PausePoolRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'pool.pause'>> {
    return this.setPaused(context.pool, true);
  }

  @MessagePattern(patternOf('pool.resume'))
  resume(
    @Payload(new ContractPipe(ResumePoolRequest)) _body: ResumePoolRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'pool.resume'>> {
    return this.setPaused(context.pool, false);
  }

  @MessagePattern(patternOf('lb.cancel'))
  async cancel(
    @Payload(new ContractPipe(CancelAcquireRequest)) body: CancelAcquireRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'lb.cancel'>> {
    const { cancelled, reason, seq, ...waiting } = await this.store.cancel(context.pool, body, body.acquireId);
    this.waiters.send(waiting);
    return { cancelled, reason, ...(seq === undefined ? {} : { leaseId: leaseIdOf(seq, body.acquireId) }) };
  }

  private async setPaused(pool: string, paused: boolean): Promise<PausePoolReply> {
    await this.pools.add(pool);
    const reply = await this.store.pausePool(pool, paused);
    this.waiters.sendAll(pool, reply);
    return { paused: reply.paused, changed: reply.changed };
  }
}
