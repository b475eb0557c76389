import { type Balancer, type CreateBalancer, findLeast, type FleetView, type TurnRequest } from './balancer';

const TICK_SECONDS = 5;
/** Headroom for each program, tokens. */
const BUFFER = 100;
const FORCED_RESUME_MS = 1_800_000;

interface Program {
  id: string;
  server?: number;
  tokens: number;
  /** A call runs or waits. */
  isReasoning: boolean;
  actingSinceMs: number;
  steps: number;
  isMarked: boolean;
  /** Without a server since a pause, or since its first turn. */
  isPaused: boolean;
  /** Server before the pause. */
  origin?: number;
  waiting?: { turn: TurnRequest; sinceMs: number };
}

/**
 * ThunderAgent (mode `tr`) by its code: each 5 s, programs are resumed while they fit, then paused on servers over their
 * capacity, the smallest first. Its code has an estimate of shared tokens, but never calls it. `decays`: tokens of programs between calls count less for a resume, by 2^-seconds.
 */
export function createThunderAgent(decays: boolean): CreateBalancer {
  return (fleet) => new ThunderAgent(fleet, decays);
}

class ThunderAgent implements Balancer {
  private readonly programs = new Map<string, Program>();
  constructor(
    private readonly fleet: FleetView,
    private readonly decays: boolean,
  ) {
    fleet.every(TICK_SECONDS, () => {
      this.resumeFitting();
      this.pauseOverCapacity();
    });
  }

  request(turn: TurnRequest): void {
    const program = this.find(turn.sessionId);
    program.steps += 1;
    program.tokens = turn.contextTokens;
    program.isReasoning = true;
    if (!program.isPaused) program.server ??= this.placeNew(turn.contextTokens);
    if (program.server !== undefined) return this.fleet.start(turn, program.server);
    program.isPaused = true;
    program.waiting = { turn, sinceMs: this.fleet.nowMs() };
  }

  ended(turn: TurnRequest, _server: number, madeTokens: number): void {
    const program = this.find(turn.sessionId);
    program.isReasoning = false;
    program.actingSinceMs = this.fleet.nowMs();
    program.tokens = turn.contextTokens + madeTokens;
    if (program.isMarked) this.pause(program);
  }

  sessionOver(sessionId: string): void {
    this.programs.delete(sessionId);
  }

  private find(id: string): Program {
    let program = this.programs.get(id);
    if (!program) {
      program = { id, tokens: 0, isReasoning: true, actingSinceMs: 0, steps: 0, isMarked: false, isPaused: false };
      this.programs.set(id, program);
    }
    return program;
  }

  private listPaused(): Program[] {
    return [...this.programs.values()].filter(({ isPaused }) => isPaused);
  }

  /** The server of a new program: the fewest active tokens with room; undefined while any program is paused. */
  private placeNew(tokens: number): number | undefined {
    if (this.listPaused().length > 0) return undefined;
    const uses = this.measureUses(false);
    let best: number | undefined;
    for (let server = 0; server < this.fleet.servers; server++) {
      if (uses[server]!.remaining < tokens + BUFFER) continue;
      if (best === undefined || uses[server]!.active < uses[best]!.active) best = server;
    }
    return best;
  }

  /** Active tokens and remaining capacity of each server. */
  private measureUses(decays: boolean): { active: number; remaining: number }[] {
    const uses = Array.from({ length: this.fleet.servers }, () => ({ active: 0, remaining: this.fleet.kvTokens }));
    for (const { server, isReasoning, tokens, actingSinceMs, isMarked } of this.programs.values()) {
      if (server === undefined) continue;
      const weight = isReasoning || !decays ? 1 : 2 ** (-(this.fleet.nowMs() - actingSinceMs) / 1_000);
      const use = uses[server]!;
      use.active += weight * tokens;
      use.remaining -= weight * tokens + BUFFER - (isMarked ? tokens : 0);
    }
    return uses;
  }

  private resumeFitting(): void {
    this.forceResumes();
    const paused = this.listPaused().toSorted((one, other) => one.tokens - other.tokens);
    const room = this.measureUses(this.decays)
      .map(({ remaining }, server) => ({ server, remaining }))
      .filter(({ remaining }) => remaining > BUFFER);
    const rank = ({ steps, isReasoning }: Program): number => (steps === 1 ? 1 : isReasoning ? 0 : 2);
    let total = room.reduce((sum, { remaining }) => sum + remaining, 0);
    const chosen: Program[] = [];
    for (const one of paused.toSorted((a, b) => rank(a) - rank(b))) {
      if (one.tokens + BUFFER > total) continue;
      chosen.push(one);
      total -= one.tokens + BUFFER;
    }
    for (const one of chosen.toSorted((a, b) => b.tokens - a.tokens)) {
      room.sort((a, b) => b.remaining - a.remaining);
      const target = room[0];
      if (!target) return;
      if (one.tokens + BUFFER > target.remaining) continue;
      target.remaining -= one.tokens + BUFFER;
      if (target.remaining <= BUFFER) room.shift();
      this.resume(one, target.server);
    }
  }

  /** Turns that have waited for 30 minutes go on: at home, or where the fewest programs are. */
  private forceResumes(): void {
    for (const one of this.listPaused()) {
      if (!one.waiting || this.fleet.nowMs() - one.waiting.sinceMs < FORCED_RESUME_MS) continue;
      const programs = new Array<number>(this.fleet.servers).fill(0);
      for (const { server } of this.programs.values()) if (server !== undefined) programs[server]! += 1;
      this.resume(one, one.origin ?? findLeast(programs));
    }
  }

  private resume(program: Program, server: number): void {
    program.server = server;
    program.isPaused = false;
    const { waiting } = program;
    program.waiting = undefined;
    if (waiting) this.fleet.start(waiting.turn, server);
  }

  private pauseOverCapacity(): void {
    this.measureUses(false).forEach(({ remaining }, server) => {
      const here = [...this.programs.values()].filter((one) => one.server === server && !one.isMarked);
      const bySize = here.toSorted((one, other) => one.tokens - other.tokens);
      let left = remaining;
      for (const one of [...bySize.filter((a) => !a.isReasoning), ...bySize.filter((a) => a.isReasoning)]) {
        if (left >= 0) return;
        left += one.tokens + (one.isReasoning ? 0 : BUFFER);
        if (one.isReasoning) one.isMarked = true;
        else this.pause(one);
      }
    });
  }

  private pause(program: Program): void {
    program.origin = program.server;
    program.server = undefined;
    program.isMarked = false;
    program.isPaused = true;
  }
}
