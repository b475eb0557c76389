import { Injectable, Logger } from '@nestjs/common';
import { decodeId, isBroomwagonError, type PoolName } from '@broomwagon/contracts';
import { TypedClient } from '@broomwagon/messaging';
import type { ServerFence } from '@broomwagon/state';
import { CoordinatorMetrics } from '../coordinator.metrics';

/** Fences servers when nothing else can end their requests. */
@Injectable()
export class ServerFences {
  private readonly logger = new Logger(ServerFences.name);

  constructor(
    private readonly client: TypedClient,
    private readonly metrics: CoordinatorMetrics,
  ) {}

  /**
   * Fences each server once; a removed server or an expired epoch is no error.
   * @throws BroomwagonError as `server.fence`
   */
  async fence(pool: PoolName, servers: readonly ServerFence[], reason: string): Promise<void> {
    const each = new Map(servers.map(({ serverId, epoch }) => [`${serverId}:${epoch}`, { serverId, epoch }]));
    for (const server of each.values()) {
      try {
        // Calls between services also have ids in their wire form.
        const serverId = decodeId(server.serverId);
        const { changed } = await this.client.call(pool, 'server.fence', { ...server, serverId, reason });
        if (!changed) continue;
        this.metrics.serversFenced.inc({ pool });
        this.logger.error({ pool, ...server, reason }, 'A server whose requests could not be stopped was fenced');
      } catch (error) {
        if (!isBroomwagonError(error, 'SERVER_NOT_FOUND')) throw error;
      }
    }
  }
}
