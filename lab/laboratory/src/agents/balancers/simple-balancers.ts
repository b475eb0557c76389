import { RandomStream } from '@broomwagon/models';
import { ProductionRouter } from '../../routing/production-router';
import { type Balancer, type CreateBalancer, findLeast, type FleetView, type TurnRequest } from './balancer';

/** A balancer that starts each turn at once. */
abstract class ImmediateBalancer implements Balancer {
  protected readonly running: number[];

  constructor(protected readonly fleet: FleetView) {
    this.running = new Array<number>(fleet.servers).fill(0);
  }

  protected abstract choose(turn: TurnRequest): number;

  request(turn: TurnRequest): void {
    const server = this.choose(turn);
    this.running[server]! += 1;
    this.fleet.start(turn, server);
  }

  ended(_turn: TurnRequest, server: number): void {
    this.running[server]! -= 1;
  }

  sessionOver(_sessionId: string): void {}
}

/** The global balancer of verl: a new session goes to the server with the fewest requests, and stays there. */
export class StickyLeastRequests extends ImmediateBalancer {
  private readonly serverOf = new Map<string, number>();

  protected choose({ sessionId }: TurnRequest): number {
    let server = this.serverOf.get(sessionId);
    if (server === undefined) this.serverOf.set(sessionId, (server = findLeast(this.running)));
    return server;
  }
}

/** `sticky_least_loaded` of vllm-router: a new session goes to the server with the fewest live sessions, and stays. */
export class StickyLeastSessions extends ImmediateBalancer {
  private readonly serverOf = new Map<string, number>();
  private readonly sessions = this.running.map(() => 0);

  protected choose({ sessionId }: TurnRequest): number {
    let server = this.serverOf.get(sessionId);
    if (server === undefined) {
      server = findLeast(this.sessions);
      this.sessions[server]! += 1;
      this.serverOf.set(sessionId, server);
    }
    return server;
  }

  override sessionOver(sessionId: string): void {
    const server = this.serverOf.get(sessionId);
    if (server !== undefined) this.sessions[server]! -= 1;
    this.serverOf.delete(sessionId);
  }
}

const POINTS_OF_A_SERVER = 160;

/** `consistent_hash` of vllm-router and SMG: a ring with 160 points for each server, keyed by session. */
export class ConsistentHash extends ImmediateBalancer {
  private readonly ring: { point: number; server: number }[];

  constructor(fleet: FleetView) {
    super(fleet);
    this.ring = Array.from({ length: fleet.servers * POINTS_OF_A_SERVER }, (_, index) => ({
      point: new RandomStream('ring', index).uniform(),
      server: index % fleet.servers,
    })).toSorted((one, other) => one.point - other.point);
  }

  protected choose({ sessionId }: TurnRequest): number {
    const hash = new RandomStream('ring key', sessionId).uniform();
    let [low, high] = [0, this.ring.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.ring[middle]!.point < hash) low = middle + 1;
      else high = middle;
    }
    return this.ring[low % this.ring.length]!.server;
  }
}

/** The defaults of Broomwagon without `sessionAdmission`. */
export class BroomwagonDefault extends ImmediateBalancer {
  private readonly router = new ProductionRouter(this.fleet.servers);

  protected choose(turn: TurnRequest): number {
    return this.router.choose({ ...turn, requestId: turn.id })!;
  }

  override ended(turn: TurnRequest, server: number): void {
    super.ended(turn, server);
    this.router.released(server, { ...turn, requestId: turn.id });
  }

  override sessionOver(sessionId: string): void {
    this.router.sessionOver(sessionId);
  }
}

/** Like {@link StickyLeastSessions}, with at most so many live sessions on a server; new sessions wait in order. */
export function createCapped(cap: number): CreateBalancer {
  return (fleet) => {
    const serverOf = new Map<string, number>();
    const sessions = new Array<number>(fleet.servers).fill(0);
    const waiting: TurnRequest[] = [];
    const place = (turn: TurnRequest): boolean => {
      const server = findLeast(sessions);
      // A subagent does not wait: its parent holds memory.
      if (sessions[server]! >= cap && turn.parentId === undefined) return false;
      sessions[server]! += 1;
      serverOf.set(turn.sessionId, server);
      fleet.start(turn, server);
      return true;
    };
    return {
      request(turn) {
        const server = serverOf.get(turn.sessionId);
        if (server !== undefined) fleet.start(turn, server);
        else if (!place(turn)) waiting.push(turn);
      },
      ended: () => undefined,
      sessionOver(sessionId) {
        sessions[serverOf.get(sessionId)!]! -= 1;
        serverOf.delete(sessionId);
        while (waiting.length > 0 && place(waiting[0]!)) waiting.shift();
      },
    };
  };
}
