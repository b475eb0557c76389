import type { PoolSettings, SnapshotServer } from '@broomwagon/contracts';
import { chooseServer } from '@broomwagon/policies';
import type { Router, RouteRequest } from './router';

/** Routes with `chooseServer`, and updates its input as the scripts of libs/state do. */
export class ProductionRouter implements Router {
  private readonly servers: SnapshotServer[];
  private readonly numbers = new Map<string, number>();
  private readonly groupLeases: Map<string, number>[];
  private readonly sessions = new Map<string, { server: number; leases: number }>();
  private chosen = 0;

  constructor(
    servers: number,
    private readonly settings: PoolSettings = {},
    private readonly maxInflight = Infinity,
  ) {
    this.servers = Array.from({ length: servers }, (_, server) => {
      // Ids sort like the numbers of servers, since the id is the last tie-break of a choice.
      const serverId = `s${String(server).padStart(6, '0')}`;
      this.numbers.set(serverId, server);
      return { serverId, leases: 0, hasRoom: true, weight: 1, weightVersion: 0, chosen: 0, sessions: 0 };
    });
    this.groupLeases = this.servers.map(() => new Map());
  }

  get name(): string {
    return this.settings.policy ?? 'least-inflight';
  }

  choose(request: RouteRequest): number | undefined {
    this.servers.forEach((server, index) => {
      server.groupLeases = this.groupLeases[index]!.get(request.groupId) ?? 0;
    });
    const session = request.sessionId === undefined ? undefined : this.sessions.get(request.sessionId);
    const choice = chooseServer({
      settings: this.settings,
      request: { ...request, acquireId: `${request.requestId}#${this.chosen}` },
      boundTo: session && this.servers[session.server]!.serverId,
      newestWeightVersion: 0,
      servers: this.servers,
    });
    if (!('server' in choice)) return undefined;
    const server = this.numbers.get(choice.server)!;
    this.count(server, request, 1);
    this.servers[server]!.chosen = ++this.chosen;
    if (request.sessionId !== undefined) this.bind(request.sessionId, server);
    return server;
  }

  released(server: number, request: RouteRequest): void {
    this.count(server, request, -1);
    const session = request.sessionId === undefined ? undefined : this.sessions.get(request.sessionId);
    if (session) session.leases -= 1;
  }

  moved(from: number, to: number, request: RouteRequest): void {
    this.count(from, request, -1);
    this.count(to, request, 1);
  }

  sessionOver(sessionId: string): void {
    const session = this.sessions.get(sessionId);
    if (!session) return;
    this.servers[session.server]!.sessions! -= 1;
    this.sessions.delete(sessionId);
  }

  private bind(sessionId: string, server: number): void {
    const before = this.sessions.get(sessionId);
    if (before?.server === server) {
      before.leases += 1;
      return;
    }
    if (before) this.servers[before.server]!.sessions! -= 1;
    this.servers[server]!.sessions! += 1;
    this.sessions.set(sessionId, { server, leases: (before?.leases ?? 0) + 1 });
  }

  private count(server: number, { groupId }: RouteRequest, change: number): void {
    const one = this.servers[server]!;
    one.leases += change;
    one.hasRoom = one.leases < this.maxInflight;
    const group = this.groupLeases[server]!;
    const leases = (group.get(groupId) ?? 0) + change;
    if (leases > 0) group.set(groupId, leases);
    else group.delete(groupId);
  }
}
