import { expectGrowth, type SessionOutlook, toContextBin } from '@broomwagon/policies';
import type { AdmissionServer, AdmissionSession, AdmissionTurn } from './admission.types';
import { ServerOrder } from './server-order';

/** Gaps from 2^24 milliseconds on share a bin. */
const MAX_GAP_BIN = 24;

/** Sessions of a group, or of a parent and its subagents: their common prefix, and the servers that have some. */
export interface AdmissionFamily {
  shared: number;
  sessions: Map<string, number>;
}

/** Model of libs/state/src/sessions/residency.lua: KV memory that the contexts of sessions hold on servers. */
export class Residency {
  readonly servers = new Map<string, AdmissionServer>();
  readonly sessions = new Map<string, AdmissionSession>();
  readonly families = new Map<string, AdmissionFamily>();
  readonly order = new ServerOrder();
  /** What sessions have taught since the start, by field of the hash of counts. */
  readonly counts = new Map<string, number>();
  outlook?: SessionOutlook;

  expectGrowth(context: number): number {
    return this.outlook ? expectGrowth(this.outlook, context) : Math.floor(1.125 * 2 ** toContextBin(context));
  }

  /** The next turn of a session that is resident on its server. */
  goOn(session: AdmissionSession, turn: AdmissionTurn, nowMs: number): void {
    if (session.leases === 0) this.noteGap(session, nowMs);
    this.setContext(session, wantedContext(session, turn));
  }

  /** The first turn of a session, or its first after a pause, on this server. */
  beginCall(before: AdmissionSession | undefined, turn: AdmissionTurn, serverId: string, nowMs: number) {
    if (!before) {
      const session = this.create(turn, serverId, nowMs);
      this.enter(session);
      return session;
    }
    if (before.state === 'resident') this.leave(before);
    if (before.leases === 0 && before.state !== 'waiting') this.noteGap(before, nowMs);
    const context = wantedContext(before, turn);
    before.state = 'paused';
    before.serverId = serverId;
    this.setContext(before, context);
    this.enter(before);
    return before;
  }

  /** Ends a call that began with `contextTokens` and generated `tokens`; the lease is already taken off. */
  endCall(session: AdmissionSession, contextTokens: number | undefined, tokens: number, nowMs: number): void {
    this.setContext(session, Math.max(session.context, (contextTokens ?? session.context) + tokens));
    if (session.leases > 0 || session.state === 'waiting') return;
    session.sinceMs = nowMs;
    if (session.state !== 'resident') return;
    const { away } = this.servers.get(session.serverId)!;
    away.delete(session.id);
    away.set(session.id, nowMs);
  }

  pause(session: AdmissionSession): void {
    this.leave(session);
    session.state = 'paused';
  }

  /** Notes that the next turn of a paused session waits. */
  await(session: AdmissionSession, nowMs: number): void {
    if (session.state !== 'paused') return;
    this.noteGap(session, nowMs);
    session.state = 'waiting';
    session.sinceMs = nowMs;
  }

  forget(session: AdmissionSession): void {
    this.learn(`ended${toContextBin(session.context)}`);
    if (session.state === 'resident') this.leave(session);
    this.sessions.delete(session.id);
  }

  private create(turn: AdmissionTurn, serverId: string, nowMs: number): AdmissionSession {
    const { sessionId: id, contextTokens: context = 0, parentSessionId: parent } = turn;
    const family = turn.groupId ?? (parent === undefined ? undefined : this.sessions.get(parent)?.family) ?? id;
    this.learn(`reached${toContextBin(context)}`);
    const session: AdmissionSession = {
      id,
      serverId,
      leases: 0,
      finished: false,
      context,
      shared: context,
      growth: this.expectGrowth(context),
      state: 'paused',
      sinceMs: nowMs,
      family,
      parent,
    };
    this.sessions.set(id, session);
    return session;
  }

  private enter(session: AdmissionSession): void {
    let family = this.families.get(session.family);
    if (!family) {
      family = { shared: session.shared, sessions: new Map() };
      this.families.set(session.family, family);
    }
    session.shared = family.shared;
    const here = family.sessions.get(session.serverId) ?? 0;
    family.sessions.set(session.serverId, here + 1);
    session.state = 'resident';
    this.change(session.serverId, countOwn(session) + (here === 0 ? session.shared : 0), session.growth);
  }

  private leave(session: AdmissionSession): void {
    const family = this.families.get(session.family)!;
    const left = family.sessions.get(session.serverId)! - 1;
    if (left > 0) family.sessions.set(session.serverId, left);
    else family.sessions.delete(session.serverId);
    if (family.sessions.size === 0) this.families.delete(session.family);
    this.change(session.serverId, -countOwn(session) - (left > 0 ? 0 : session.shared), -session.growth);
    this.servers.get(session.serverId)!.away.delete(session.id);
  }

  private setContext(session: AdmissionSession, context: number): void {
    const [own, growth, first] = [countOwn(session), session.growth, toContextBin(session.context)];
    session.context = context;
    const last = toContextBin(context);
    for (let bin = first + 1; bin <= last; bin++) this.learn(`reached${bin}`);
    if (last !== first) session.growth = this.expectGrowth(context);
    if (session.state === 'resident') {
      this.change(session.serverId, countOwn(session) - own, session.growth - growth);
    }
  }

  private change(serverId: string, tokens: number, growth: number): void {
    const server = this.servers.get(serverId)!;
    server.tokens = Math.max(0, server.tokens + tokens);
    server.growth = Math.max(0, server.growth + growth);
    this.order.place(server);
  }

  private noteGap({ sinceMs }: AdmissionSession, nowMs: number): void {
    const bin = Math.floor(Math.log2(Math.max(1, nowMs - sinceMs)));
    this.learn(`gap${Math.min(MAX_GAP_BIN, bin)}`);
  }

  private learn(field: string): void {
    this.counts.set(field, (this.counts.get(field) ?? 0) + 1);
  }
}

/** Tokens of a context that no other session of its family has. */
export function countOwn({ context, shared }: Pick<AdmissionSession, 'context' | 'shared'>): number {
  return Math.max(0, context - shared);
}

/** Turns at the same time have most of their context in common: the longest counts. */
function wantedContext(session: AdmissionSession, { contextTokens = session.context }: AdmissionTurn): number {
  return session.leases > 0 ? Math.max(session.context, contextTokens) : contextTokens;
}
