import { Controller } from '@nestjs/common';
import {
  CordonServerRequest,
  DrainServerRequest,
  FenceServerRequest,
  GetServerRequest,
  ListServersRequest,
  QuarantineServerRequest,
  ReconcileServerRequest,
  RegisterServerRequest,
  RemoveServerRequest,
  ServerHeartbeatRequest,
  UncordonServerRequest,
  UpdateServerRequest,
} from '@broomwagon/contracts';
import { MessageContext, Operation } from '@broomwagon/messaging';
import { ServerStore } from '@broomwagon/state';
import { SweepService } from '../upkeep/sweep.service';
import { ServersService } from './servers.service';

@Controller()
export class ServerController {
  constructor(
    private readonly servers: ServersService,
    private readonly store: ServerStore,
    private readonly sweeper: SweepService,
  ) {}

  @Operation('server.register')
  register(body: RegisterServerRequest, { pool }: MessageContext) {
    return this.servers.register(pool, body);
  }

  @Operation('server.heartbeat')
  heartbeat(body: ServerHeartbeatRequest, { pool }: MessageContext) {
    return this.servers.heartbeat(pool, body);
  }

  @Operation('server.update')
  update(body: UpdateServerRequest, { pool }: MessageContext) {
    return this.servers.update(pool, body);
  }

  @Operation('server.drain')
  drain(body: DrainServerRequest, { pool }: MessageContext) {
    return this.servers.drain(pool, body);
  }

  @Operation('server.cordon')
  cordon({ serverId }: CordonServerRequest, { pool }: MessageContext) {
    return this.servers.cordon(pool, serverId, true);
  }

  @Operation('server.uncordon')
  uncordon({ serverId }: UncordonServerRequest, { pool }: MessageContext) {
    return this.servers.cordon(pool, serverId, false);
  }

  @Operation('server.fence')
  fence(body: FenceServerRequest, { pool }: MessageContext) {
    return this.servers.fence(pool, body);
  }

  @Operation('server.remove')
  async remove({ serverId }: RemoveServerRequest, { pool }: MessageContext) {
    const reply = await this.store.remove(pool, { serverId });
    this.sweeper.soon(pool);
    return reply;
  }

  @Operation('server.reconcile')
  reconcile(body: ReconcileServerRequest, { pool }: MessageContext) {
    return this.servers.reconcile(pool, body);
  }

  @Operation('server.quarantine')
  quarantine(body: QuarantineServerRequest, { pool }: MessageContext) {
    return this.servers.quarantine(pool, body);
  }

  @Operation('server.get')
  get({ serverId }: GetServerRequest, { pool }: MessageContext) {
    return this.store.get(pool, serverId);
  }

  @Operation('server.list')
  list(body: ListServersRequest, { pool }: MessageContext) {
    return this.store.list(pool, body);
  }
}
