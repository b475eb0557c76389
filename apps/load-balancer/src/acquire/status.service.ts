import { Injectable } from '@nestjs/common';
import type { LoadBalancerStatus } from '@broomwagon/contracts';
import { RoutingStore } from '@broomwagon/state';

/** `lb.status`. */
@Injectable()
export class StatusService {
  constructor(private readonly store: RoutingStore) {}

  /** Totals and the first page of servers by id. @throws BroomwagonError UNAVAILABLE */
  async status(pool: string): Promise<LoadBalancerStatus> {
    const [totals, page] = await Promise.all([this.store.status(pool), this.store.listServers(pool, '0')]);
    const perServer = page.servers
      .map(({ serverId, state, epoch, inflight, maxInflight }) => ({ serverId, state, epoch, inflight, maxInflight }))
      .sort((one, other) => (one.serverId < other.serverId ? -1 : 1));
    return { pool, ...totals, perServer };
  }
}
