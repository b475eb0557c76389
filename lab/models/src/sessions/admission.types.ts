/** A turn of a session that needs a server; see `lb.acquire`. */
export interface AdmissionTurn {
  acquireId: string;
  sessionId: string;
  groupId?: string;
  parentSessionId?: string;
  contextTokens?: number;
  /** 9 is first; 5 by default. */
  priority?: number;
}

/** Server of a turn, and the rule that has chosen it. */
export interface AdmissionGrant {
  serverId: string;
  branch: 'sticky-hit' | 'admitted' | 'resumed';
}

export type AdmissionAnswer = AdmissionGrant | { waits: 'paused' | 'new' } | { error: 'SESSION_CONFLICT' };

/** A turn that has waited, and is granted now. */
export type AdmissionWaiterGrant = AdmissionGrant & { acquireId: string };

/** Rules of admission that the laboratory may vary; the values of the scripts by default. */
export interface AdmissionRules {
  /** Parts of the expected growth that a paused and a new session need beside their context. */
  reserved: Readonly<Record<'paused' | 'new', number>>;
  /** Part of the KV memory that contexts may fill. */
  usableShare: number;
  /** Longest wait of the turn of a paused session, milliseconds. */
  pausedSessionWaitMs: number;
}

/** A session and its place. */
export interface AdmissionSession {
  id: string;
  serverId: string;
  leases: number;
  finished: boolean;
  context: number;
  /** First tokens of the context, which the sessions of the family have in common. */
  shared: number;
  growth: number;
  state: 'resident' | 'paused' | 'waiting';
  /** End of the last call; in state waiting, when the turn began to wait. */
  sinceMs: number;
  family: string;
  parent?: string;
}

/** A server, and sums over the sessions that are resident on it. */
export interface AdmissionServer {
  id: string;
  /** KV memory, tokens; undefined: not known, so the server takes all sessions. */
  capacity?: number;
  tokens: number;
  growth: number;
  /** Sequence of the last choice. */
  chosen: number;
  /** Sessions between two turns, and some that have a call again, by the end of their last call. */
  away: Map<string, number>;
}
