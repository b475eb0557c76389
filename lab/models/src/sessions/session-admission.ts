import { chanceOfReturn, type SessionOutlook } from '@broomwagon/policies';
import type {
  AdmissionAnswer,
  AdmissionGrant,
  AdmissionRules,
  AdmissionServer,
  AdmissionSession,
  AdmissionTurn,
  AdmissionWaiterGrant,
} from './admission.types';
import { countOwn, Residency } from './residency';
import { WaitingTurns, type WaitingTurn } from './waiting-turns';

/** Rules of libs/state/src/sessions/admission.lua. */
export const ADMISSION_RULES: AdmissionRules = {
  reserved: { paused: 0.175, new: 0.35 },
  usableShare: 0.98,
  pausedSessionWaitMs: 600_000,
};
const LOOKED_AT = 8;
const SERVERS_LOOKED_AT = 32;
const AWAY_LOOKED_AT = 32;
const MAX_STALE = 8;
const MAX_ANCESTORS = 16;
const PREFILL_TOKENS_PER_MS = 10;
const DEFAULT_STALE_MS = 600_000;

/** What a turn adds to a server. `servers`: servers that have the prefix of its family. */
interface Need {
  own: number;
  shared: number;
  growth: number;
  servers: ReadonlySet<string>;
}

/**
 * Model of libs/state/src/sessions/admission.lua (`sessionAdmission: kv`) in plain TypeScript, for servers that always
 * have room for one more lease and are never lost. A differential test drives both with the same commands at the same
 * times.
 */
export class SessionAdmission {
  readonly residency = new Residency();
  readonly waiting = new WaitingTurns();
  /** Pauses so far. */
  pauses = 0;
  private readonly leases = new Map<string, AdmissionTurn>();
  private sequence = 0;
  /** Called for each session whose context is given up until its next turn. */
  onPause?: (session: AdmissionSession) => void;

  constructor(private readonly rules: AdmissionRules = ADMISSION_RULES) {}

  addServer(id: string, capacity?: number): void {
    const server = { id, capacity, tokens: 0, growth: 0, chosen: 0, away: new Map<string, number>() };
    this.residency.servers.set(id, server);
    this.residency.order.place(server);
  }

  setOutlook(outlook: SessionOutlook): void {
    this.residency.outlook = outlook;
  }

  acquire(turn: AdmissionTurn, nowMs: number): AdmissionAnswer {
    if (this.hasWrongParent(turn)) return { error: 'SESSION_CONFLICT' };
    const choice = this.choose(turn, false, nowMs);
    if ('serverId' in choice) {
      this.grant(turn, choice.serverId, nowMs);
    } else {
      this.waiting.park(turn, choice.waits, this.sinceWhen(turn, nowMs));
    }
    return choice;
  }

  /** Ends a call that has generated `tokens`. */
  release(acquireId: string, tokens: number, nowMs: number): AdmissionWaiterGrant[] {
    const turn = this.leases.get(acquireId);
    if (!turn) return [];
    this.leases.delete(acquireId);
    const session = this.residency.sessions.get(turn.sessionId);
    if (!session) return [];
    session.leases -= 1;
    this.residency.endCall(session, turn.contextTokens, tokens, nowMs);
    if (session.leases <= 0 && session.finished) this.residency.forget(session);
    this.relieve(this.residency.servers.get(session.serverId)!, nowMs);
    return this.grantWaiters(nowMs);
  }

  /** Ends a session, now or with its last call. */
  finish(sessionId: string, nowMs: number): AdmissionWaiterGrant[] {
    const session = this.residency.sessions.get(sessionId);
    if (!session) return this.grantWaiters(nowMs);
    if (session.leases > 0) session.finished = true;
    else this.residency.forget(session);
    return this.grantWaiters(nowMs);
  }

  /** Grants turns that wait, paused sessions before new ones; also to be called now and then. */
  grantWaiters(nowMs: number): AdmissionWaiterGrant[] {
    const granted: AdmissionWaiterGrant[] = [];
    for (const lane of ['paused', 'new'] as const) {
      let stays = 0;
      while (stays < LOOKED_AT) {
        const waiter = this.waiting.at(lane, stays);
        if (!waiter) break;
        if (!this.settle(waiter, granted, nowMs)) stays += 1;
      }
      if (stays > 0) break;
    }
    return granted;
  }

  /** Serves a turn that waits, or moves it to the lane to which it belongs now. True if it left its lane. */
  private settle(waiter: WaitingTurn, granted: AdmissionWaiterGrant[], nowMs: number): boolean {
    const { turn } = waiter;
    const choice = this.choose(turn, true, nowMs);
    if ('serverId' in choice) {
      this.waiting.remove(waiter);
      this.grant(turn, choice.serverId, nowMs);
      granted.push({ acquireId: turn.acquireId, ...choice });
      return true;
    }
    if (choice.waits === waiter.lane) return false;
    this.waiting.move(waiter, choice.waits, this.sinceWhen(turn, nowMs));
    return true;
  }

  private choose(turn: AdmissionTurn, hasWaited: boolean, nowMs: number): AdmissionGrant | { waits: 'paused' | 'new' } {
    const session = this.residency.sessions.get(turn.sessionId);
    if (session?.state === 'resident') return { serverId: session.serverId, branch: 'sticky-hit' };
    // The parent of a subagent holds memory while it waits.
    const isSubagent = turn.parentSessionId !== undefined && this.residency.sessions.has(turn.parentSessionId);
    const kind = session || isSubagent ? 'paused' : 'new';
    const server = !hasWaited && this.isBehind(kind) ? undefined : this.findServer(turn, session, kind, nowMs);
    if (server) return { serverId: server.id, branch: kind === 'paused' ? 'resumed' : 'admitted' };
    if (session) this.residency.await(session, nowMs);
    return { waits: kind };
  }

  private findServer(
    turn: AdmissionTurn,
    session: AdmissionSession | undefined,
    kind: 'paused' | 'new',
    nowMs: number,
  ) {
    const isOverdue = session?.state === 'waiting' && nowMs - session.sinceMs >= this.rules.pausedSessionWaitMs;
    const need = this.measureNeed(turn, session);
    const { servers, order } = this.residency;
    const home = session ? [session.serverId] : [];
    for (const id of [...home, ...order.first(SERVERS_LOOKED_AT)]) {
      const server = servers.get(id)!;
      if (isOverdue || this.makesRoom(server, need, kind, nowMs)) return server;
    }
    return undefined;
  }

  private measureNeed(turn: AdmissionTurn, session: AdmissionSession | undefined): Need {
    const parent = turn.parentSessionId === undefined ? undefined : this.residency.sessions.get(turn.parentSessionId);
    const context = turn.contextTokens ?? session?.context ?? 0;
    const name = session?.family ?? turn.groupId ?? parent?.family ?? turn.sessionId;
    const family = this.residency.families.get(name);
    const shared = Math.min(context, family?.shared ?? session?.shared ?? context);
    const growth = this.residency.expectGrowth(context);
    return { own: context - shared, shared, growth, servers: new Set(family?.sessions.keys()) };
  }

  private hasRoom(server: AdmissionServer, need: Need, kind: 'paused' | 'new'): boolean {
    if (server.capacity === undefined || server.tokens <= 0) return true;
    const tokens = need.servers.has(server.id) ? need.own : need.own + need.shared;
    const reserved = this.rules.reserved[kind] * (server.growth + need.growth);
    return server.tokens + tokens + reserved <= this.rules.usableShare * server.capacity;
  }

  /** Whether a server has room for a session, after sessions that are not expected to return were paused. */
  private makesRoom(server: AdmissionServer, need: Need, kind: 'paused' | 'new', nowMs: number): boolean {
    if (this.hasRoom(server, need, kind)) return true;
    const staleMs = this.residency.outlook?.staleMs ?? DEFAULT_STALE_MS;
    for (const session of this.readAway(server, MAX_STALE)) {
      if (nowMs - session.sinceMs <= staleMs) return false;
      this.pause(session);
      if (this.hasRoom(server, need, kind)) return true;
    }
    return false;
  }

  private grant(turn: AdmissionTurn, serverId: string, nowMs: number): void {
    const before = this.residency.sessions.get(turn.sessionId);
    const server = this.residency.servers.get(serverId)!;
    server.chosen = ++this.sequence;
    this.leases.set(turn.acquireId, turn);
    const stays = before?.state === 'resident' && before.serverId === serverId;
    if (stays) this.residency.goOn(before, turn, nowMs);
    const session = stays ? before : this.residency.beginCall(before, turn, serverId, nowMs);
    session.leases += 1;
    session.finished = false;
    this.relieve(server, nowMs);
    this.residency.order.place(server);
  }

  private isOver({ tokens, capacity }: AdmissionServer): boolean {
    return capacity !== undefined && tokens > this.rules.usableShare * capacity;
  }

  /** Pauses sessions between two turns while the contexts on the server exceed its memory, the cheapest first. */
  private relieve(server: AdmissionServer, nowMs: number): void {
    if (!this.isOver(server)) return;
    const away = this.readAway(server, AWAY_LOOKED_AT);
    while (away.length > 0 && this.isOver(server)) {
      const costs = away.map((session) => this.estimateCost(session, nowMs));
      const [chosen] = away.splice(costs.indexOf(Math.min(...costs)), 1);
      this.pause(chosen!);
    }
  }

  /** Tokens of a session that must be computed again if it is paused now, times the probability that this matters. */
  private estimateCost(session: AdmissionSession, nowMs: number): number {
    const tokens = countOwn(session);
    const [awayMs, withinMs] = [nowMs - session.sinceMs, tokens / PREFILL_TOKENS_PER_MS];
    const { outlook } = this.residency;
    return tokens * (outlook ? chanceOfReturn(outlook, awayMs, withinMs) : withinMs / (withinMs + awayMs + 1000));
  }

  /** Sessions between two turns, longest away first; at least so many if there are. */
  private readAway(server: AdmissionServer, count: number): AdmissionSession[] {
    const away: AdmissionSession[] = [];
    let [isWhole, hasBusy] = [false, true];
    while (hasBusy && !isWhole && away.length < count) {
      const page = [...server.away.keys()].slice(away.length, away.length + AWAY_LOOKED_AT);
      isWhole = page.length < AWAY_LOOKED_AT;
      hasBusy = false;
      for (const id of page) {
        const session = this.residency.sessions.get(id);
        if (session?.leases === 0) away.push(session);
        else hasBusy = server.away.delete(id);
      }
    }
    return away;
  }

  private pause(session: AdmissionSession): void {
    this.residency.pause(session);
    this.pauses += 1;
    this.onPause?.(session);
  }

  private isBehind(kind: 'paused' | 'new'): boolean {
    const paused = this.waiting.count('paused');
    return kind === 'paused' ? paused >= LOOKED_AT : this.waiting.size > 0;
  }

  private sinceWhen({ sessionId }: AdmissionTurn, nowMs: number): number {
    const session = this.residency.sessions.get(sessionId);
    return session?.state === 'waiting' ? session.sinceMs : nowMs;
  }

  private hasWrongParent({ sessionId, parentSessionId }: AdmissionTurn): boolean {
    if (parentSessionId === undefined) return false;
    const session = this.residency.sessions.get(sessionId);
    if (session) return session.parent !== undefined && session.parent !== parentSessionId;
    let id: string | undefined = parentSessionId;
    for (let step = 0; step < MAX_ANCESTORS && id !== undefined; step++) {
      if (id === sessionId) return true;
      id = this.residency.sessions.get(id)?.parent;
    }
    return false;
  }
}
