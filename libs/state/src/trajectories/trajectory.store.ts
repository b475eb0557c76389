import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { transition } from '../library/function-runner';
import { createStoreClass } from '../library/store-of';

export interface TrajectorySession {
  sessionId: string;
  /** Token with which the session was started. Only this token adds turns. */
  tokenId: string;
  /** Job to whose payload quota the tokens of the session count. */
  job: string;
  createdAtMs: number;
  /** Metadata from the client, not read here. */
  metadata?: object;
}
/** A session in a list of sessions. */
export interface ListedTrajectory {
  about: TrajectorySession;
  /** Number of started turns. */
  turns: number;
  /** Sampling parameters of the requests; absent without any. */
  sampling?: object;
}
/** Tokens [start, end) of a response, and the weights that generated them. */
interface WeightSpan {
  version: string;
  start: number;
  end: number;
}
/** A recorded turn; its payload is a {@link TurnTokens}. */
export interface TurnRecord {
  turn: number;
  /** Id of the request. */
  id: string;
  /** Turn that this turn extends: its prompt begins with the prompt and the response of the parent. */
  parent?: number;
  ref: string;
  /** Number of tokens of the prompt that the parent does not have. */
  promptTokens: number;
  responseTokens: number;
  finishReason: string;
  weights: WeightSpan[];
  /** False if an engine did not report its weights. Then the version of the lease is used. */
  isVersionReported: boolean;
}
/** The payload of a turn. */
export interface TurnTokens {
  /** Token ids of the prompt that the parent does not have. */
  promptTokenIds: number[];
  tokenIds: number[];
  /** Log probabilities of the response; absent if the engine did not send all of them. */
  logprobs?: (number | null)[];
  /** Messages of a chat, if they are recorded. */
  chat?: TurnChat;
}
export interface TurnChat {
  /** Number of messages of the parent's request with which the request begins. */
  shared: number;
  /** Further messages of the request. */
  messages: unknown[];
  response: Record<string, unknown>;
}
/** Redis was set back: turns after the turn `after` have numbers that are higher by `offset`. */
export interface SetBack {
  after: number;
  offset: number;
}
export interface TrajectoryRead {
  /** The recorded session; absent if the session is not recorded. */
  about?: TrajectorySession;
  sampling?: object;
  turns?: TurnRecord[];
  /** Missing turns, by the numbers that clients know. */
  missing?: { turn: number; startedAtMs: number; reason: string }[];
  setBacks?: SetBack[];
  stamp?: string;
}
export type RecordOutcome = 'recorded' | 'replaced' | 'deleted' | 'changed';

/** Id of a session, see {@link toTrajectoryId}. */
interface Id {
  id: string;
}
interface Turn extends Id {
  turn: number;
  generation: string;
}
interface RecordArgs extends Turn {
  ref: string;
  record: string;
  sequence: string;
  parent?: number;
  parentSequence?: string;
  /** Latest stamp of the pool that the caller has seen. */
  stamp?: string;
}

/** Stores the turns of the trajectories of sessions. The tokens of the turns are in the payload store. */
@Injectable()
export class TrajectoryStore extends createStoreClass({
  open: transition<
    Id & { about: string; isDrawn?: boolean; sampling?: string; stamp?: string },
    { about: TrajectorySession; made: boolean; samplingAgeMs?: number; stamp: string }
  >('trajectories/open'),
  sampling: transition<Id & { tokenId: string }, { sampling?: Record<string, unknown>; isUsed: boolean }>(
    'trajectories/sampling',
  ),
  begin: transition<
    Id & { tokenId: string; identity: string; generation: string; hasOwnId: boolean; stamp?: string },
    { job?: string; turn?: number; number?: number; stamp?: string; refusal?: 'FORBIDDEN' | 'TRAJECTORY_FULL' }
  >('trajectories/begin'),
  sequences: transition<Id, { sequences: string[] }>('trajectories/sequences'),
  record: transition<RecordArgs, { outcome: RecordOutcome; stamp: string }>('trajectories/record'),
  miss: transition<Turn & { error: string }, object>('trajectories/miss'),
  read: transition<Id & { stamp?: string }, TrajectoryRead>('trajectories/read'),
  list: transition<{ tokenId?: string; cursor?: string }, { sessions: ListedTrajectory[]; cursor?: string }>(
    'trajectories/list',
  ),
  delete: transition<Id & { tokenId?: string }, { deleted: boolean }>('trajectories/delete'),
  /** Deletes one session that was not used for `idleMs`. */
  expire: transition<{ idleMs: number }, { more: boolean }>('trajectories/expire'),
}) {}

/** Number by which clients know a turn. */
export function turnNumber(turn: number, setBacks: readonly SetBack[] = []): number {
  return turn + (setBacks.findLast(({ after }) => turn > after)?.offset ?? 0);
}

/** Id of a session in this store and in the references of its payloads, because a `sessionId` may be any text. */
export function toTrajectoryId(sessionId: string): string {
  return createHash('sha256').update(sessionId).digest('hex').slice(0, 40);
}
