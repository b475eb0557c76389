import { Controller } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import {
  CordonServerRequest,
  DrainServerRequest,
  FenceServerRequest,
  ListServersRequest,
  patternOf,
  ReconcileServerRequest,
  RegisterServerRequest,
  RemoveServerRequest,
  ServerHeartbeatRequest,
  UncordonServerRequest,
  UpdateServerRequest,
  type ReplyOf,
} from '@broomwagon/contracts';
import { ContractPipe, MessageContext } from '@broomwagon/messaging';
import { ServersService } from './servers.service';

/** The operations `server.*`. */
@Controller()
export class ServersController {
  constructor(private readonly servers: ServersService) {}

  @MessagePattern(patternOf('server.register'))
  register(
    @Payload(new ContractPipe(RegisterServerRequest)) body: RegisterServerRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'server.register'>> {
    return this.servers.register(context.pool, body);
  }

  @MessagePattern(patternOf('server.heartbeat'))
  heartbeat(
    @Payload(new ContractPipe(ServerHeartbeatRequest)) body: ServerHeartbeatRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'server.heartbeat'>> {
    return this.servers.heartbeat(context.pool, body);
  }

  @MessagePattern(patternOf('server.update'))
  update(
    @Payload(new ContractPipe(UpdateServerRequest)) body: UpdateServerRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'server.update'>> {
    return this.servers.update(context.pool, body);
  }

  @MessagePattern(patternOf('server.drain'))
  drain(
    @Payload(new ContractPipe(DrainServerRequest)) body: DrainServerRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'server.drain'>> {
    return this.servers.drain(context.pool, body);
  }

  @MessagePattern(patternOf('server.cordon'))
  cordon(
    @Payload(new ContractPipe(CordonServerRequest)) body: CordonServerRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'server.cordon'>> {
    return this.servers.cordon(context.pool, body.serverId, true);
  }

  @MessagePattern(patternOf('server.uncordon'))
  uncordon(
    @Payload(new ContractPipe(UncordonServerRequest)) body: UncordonServerRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'server.uncordon'>> {
    return this.servers.cordon(context.pool, body.serverId, false);
  }

  @MessagePattern(patternOf('server.fence'))
  fence(
    @Payload(new ContractPipe(FenceServerRequest)) body: FenceServerRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'server.fence'>> {
    return this.servers.fence(context.pool, body);
  }

  @MessagePattern(patternOf('server.remove'))
  remove(
    @Payload(new ContractPipe(RemoveServerRequest)) body: RemoveServerRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'server.remove'>> {
    return this.servers.remove(context.pool, body.serverId);
  }

  @MessagePattern(patternOf('server.reconcile'))
  reconcile(
    @Payload(new ContractPipe(ReconcileServerRequest)) body: ReconcileServerRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'server.reconcile'>> {
    return this.servers.reconcile(context.pool, body);
  }

  @MessagePattern(patternOf('server.list'))
  list(
    @Payload(new ContractPipe(ListServersRequest)) body: ListServersRequest,
    @Ctx() context: MessageContext,
  ): Promise<ReplyOf<'server.list'>> {
    return this.servers.list(context.pool, body.cursor ?? '0');
  }
}
