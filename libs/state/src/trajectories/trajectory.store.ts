import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { transition } from '../library/function-runner';
import { storeOf } from '../library/store-of';

/** A session that is recorded. */
export interface TrajectorySession {
  sessionId: string;
  /** Token that began it: only this one adds turns. */
  tokenId: string;
  /** Job whose payload quota its tokens count to. */
  job: string;
  createdAtMs: number;
  /** Of its client; not read here. */
  metadata?: object;
}
/** A session in the list of them. */
export interface ListedTrajectory {
  about: TrajectorySession;
  /** How many have begun. */
  turns: number;
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
  /** Id of its request. */
  id: string;
  /** The turn that it extends: its prompt begins with the prompt and the response of that turn. */
  parent?: number;
  ref: string;
  /** Tokens of the prompt that the parent does not have. */
  promptTokens: number;
  responseTokens: number;
  finishReason: string;
  weights: WeightSpan[];
  /** False if an engine did not report its weights: then they are those of the lease. */
  isVersionReported: boolean;
}
/** The payload of a turn. */
export interface TurnTokens {
  /** Those that the parent does not have. */
  promptTokenIds: number[];
  tokenIds: number[];
  /** Absent if the engine did not send all of them. */
  logprobs?: (number | null)[];
  /** Of a chat, if messages are recorded. */
  chat?: TurnChat;
}
/** Messages of a turn. */
export interface TurnChat {
  /** Messages of the parent's request with which the request begins. */
  shared: number;
  /** Further messages of the request. */
  messages: unknown[];
  response: Record<string, unknown>;
}
/** Redis was set back: turns after this one have numbers that are higher by `offset`. */
export interface SetBack {
  after: number;
  offset: number;
}
/** What is recorded of a session. */
export interface TrajectoryRead {
  /** Absent: the session is not recorded. */
  about?: TrajectorySession;
  turns?: TurnRecord[];
  /** By the numbers that clients know. */
  missing?: { turn: number; startedAtMs: number; reason: string }[];
  setBacks?: SetBack[];
  /** Of the pool. */
  stamp?: string;
}
export type RecordOutcome = 'recorded' | 'replaced' | 'deleted' | 'changed';

/** Of a session. */
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
  /** The latest that the caller has seen of the pool. */
  stamp?: string;
}

/** Keeps of which turns the trajectories of sessions are made; their tokens are in the payload store. */
@Injectable()
export class TrajectoryStore extends storeOf({
  open: transition<
    Id & { about: string; isDrawn?: boolean; stamp?: string },
    { about: TrajectorySession; made: boolean; stamp: string }
  >('trajectories/open'),
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
  /** One that was not used for `idleMs`. */
  expire: transition<{ idleMs: number }, { more: boolean }>('trajectories/expire'),
}) {}

/** The number by which clients know a turn. */
export function turnNumber(turn: number, setBacks: readonly SetBack[] = []): number {
  return turn + (setBacks.findLast(({ after }) => turn > after)?.offset ?? 0);
}

/** The id of a session here and in the references of its payloads: its own may be any text. */
export function trajectoryIdOf(sessionId: string): string {
  return createHash('sha256').update(sessionId).digest('hex').slice(0, 40);
}
