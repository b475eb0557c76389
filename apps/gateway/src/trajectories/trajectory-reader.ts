import type { ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Injectable } from '@nestjs/common';
import { BroomwagonError, includesRole } from '@broomwagon/contracts';
import { withRetry } from '@broomwagon/messaging';
import { PayloadStore, toTrajectoryId, TrajectoryStore, type TrajectoryRead } from '@broomwagon/state';
import { GatewayConfig } from '../gateway.config';
import { checkedSession } from '../answers/placement';
import type { Caller } from '../keys/api-keys';

/** Maximum time for which an answer waits for tokens of a failing payload store, milliseconds. */
const READ_DEADLINE_MS = 10_000;

/** The record of a session, without its tokens. */
export type FoundTrajectory = TrajectoryRead & Required<Pick<TrajectoryRead, 'about'>>;

/** Reads trajectories for the callers that may read them. */
@Injectable()
export class TrajectoryReader {
  /** Bytes of a payload. @throws BroomwagonError errors of the payload store */
  readonly get = (ref: string): Promise<Buffer> =>
    withRetry(() => this.payloads.get(ref), { deadlineMs: READ_DEADLINE_MS });

  constructor(
    private readonly trajectories: TrajectoryStore,
    private readonly payloads: PayloadStore,
    private readonly config: GatewayConfig,
  ) {}

  /** @throws BroomwagonError VALIDATION_FAILED, SESSION_NOT_FOUND also for a session of another key, UNAVAILABLE */
  async read(session: unknown, caller: Caller): Promise<FoundTrajectory> {
    const id = toTrajectoryId(checkedSession(session, 'session'));
    const { pool } = this.config;
    const { about, ...read } = await this.trajectories.read(pool, { id, stamp: this.trajectories.seenStamp(pool) });
    const mayRead = about?.tokenId === caller.tokenId || includesRole(caller.role, 'operator');
    if (about === undefined || !mayRead) {
      throw new BroomwagonError('SESSION_NOT_FOUND', 'No session of this key is recorded under this id');
    }
    return { about, ...read };
  }

  /** Answers with pieces of JSON. @throws errors of the pieces; then the answer ends in the middle */
  async send(response: ServerResponse, pieces: AsyncIterable<string>): Promise<void> {
    response.writeHead(200, { 'content-type': 'application/json' });
    try {
      await pipeline(Readable.from(pieces), response);
    } catch (error) {
      // An unfinished JSON shows the client that there was an error; a client that has disconnected is no error.
      if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
    }
  }
}
