import { Injectable } from '@nestjs/common';
import {
  BroomwagonError,
  type ListServersReply,
  type RegisterServerReply,
  type RegisterServerRequest,
  type RemoveServerReply,
  type ServerHeartbeatReply,
  type ServerHeartbeatRequest,
} from '@broomwagon/contracts';
import { PoolDirectory, RoutingStore } from '@broomwagon/state';
import { WaiterAnswersService } from '../acquire/waiter-answers.service';
import { SweepService } from '../upkeep/sweep.service';

/** The registry of servers. */
@Injectable()
export class ServersService {
  constructor(
    private readonly store: RoutingStore,
    private readonly pools: PoolDirectory,
    private readonly waiters: WaiterAnswersService,
    private readonly sweeper: SweepService,
  ) {}

  /** Ready at once; new room goes to waiters. @throws BroomwagonError UNAVAILABLE */
  async register(pool: string, request: RegisterServerRequest): Promise<RegisterServerReply> {
    await this.pools.add(pool);
    const { capabilities, ...rest } = request;
    const reply = await this.store.registerServer(pool, {
      ...rest,
      weight: request.weight ?? 1,
      capabilities: capabilities && JSON.stringify(capabilities),
    });
    this.waiters.sendAll(pool, reply);
    this.sweeper.soon(pool);
    return { serverId: reply.serverId, epoch: reply.epoch, state: reply.state };
  }

  /** @throws BroomwagonError SERVER_NOT_FOUND, FENCED, UNAVAILABLE */
  async heartbeat(pool: string, request: ServerHeartbeatRequest): Promise<ServerHeartbeatReply> {
    const reply = await this.store.heartbeatServer(pool, request.serverId, request.epoch);
    this.waiters.sendAll(pool, reply);
    return { state: reply.states[request.serverId]! };
  }

  /** @throws BroomwagonError UNAVAILABLE */
  async remove(pool: string, serverId: string): Promise<RemoveServerReply> {
    const reply = await this.store.removeServer(pool, serverId);
    this.sweeper.soon(pool);
    return reply;
  }

  /** @throws BroomwagonError VALIDATION_FAILED for a cursor that is none, UNAVAILABLE */
  async list(pool: string, cursor: string): Promise<ListServersReply> {
    if (!/^\d{1,20}$/.test(cursor)) {
      throw new BroomwagonError('VALIDATION_FAILED', 'The cursor is not one of ours', { field: 'cursor' });
    }
    const page = await this.store.listServers(pool, cursor);
    return { servers: page.servers, ...(page.cursor === '0' ? {} : { cursor: page.cursor }) };
  }
}
