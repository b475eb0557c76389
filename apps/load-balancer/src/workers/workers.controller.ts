import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import {
  DeregisterWorkerRequest,
  patternOf,
  RegisterWorkerRequest,
  SyncWorkerRequest,
  WorkerHeartbeatRequest,
  type ReplyOf,
} from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { RoutingStore } from '@broomwagon/state';
import { WorkersService } from './workers.service';

/** The operations `worker.*`. */
@Controller()
export class WorkersController {
  constructor(
    private readonly workers: WorkersService,
    private readonly store: RoutingStore,
  ) {}

  @MessagePattern(patternOf('worker.register'))
  register(
    @Payload(new ContractPipe(RegisterWorkerRequest)) body: RegisterWorkerRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'worker.register'>> {
    return this.workers.register(context.pool, body);
  }

  @MessagePattern(patternOf('worker.heartbeat'))
  heartbeat(
    @Payload(new ContractPipe(WorkerHeartbeatRequest)) body: WorkerHeartbeatRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'worker.heartbeat'>> {
    return this.store.heartbeatWorker(context.pool, body.workerId, body.workerEpoch);
  }

  @MessagePattern(patternOf('worker.sync'))
  sync(
    @Payload(new ContractPipe(SyncWorkerRequest)) body: SyncWorkerRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'worker.sync'>> {
    return this.workers.sync(context.pool, body);
  }

  @MessagePattern(patternOf('worker.deregister'))
  deregister(
    @Payload(new ContractPipe(DeregisterWorkerRequest)) body: DeregisterWorkerRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'worker.deregister'>> {
    return this.workers.deregister(context.pool, body);
  }
}
