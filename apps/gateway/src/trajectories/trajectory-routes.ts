import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Injectable } from '@nestjs/common';
import { BroomwagonError, includesRole, invalidField, type JobId } from '@broomwagon/contracts';
import { ControlPlane } from '@broomwagon/generation';
import { withRetry } from '@broomwagon/messaging';
import { PayloadStore, trajectoryIdOf, TrajectoryStore, type TrajectoryRead } from '@broomwagon/state';
import { GatewayConfig } from '../gateway.config';
import { boundSession, checkedSession } from '../http/placement';
import { isSet } from '../http/read-fields';
import type { Exchange, Routes } from '../http/route';
import { sendJson } from '../http/send-json';
import type { Caller } from '../keys/api-keys';
import { readLimit, readTraces } from './rllm-traces';
import { BranchReader, branchesOf } from './trajectory-branches';
import { checkedJob, TrajectoryRecorder } from './trajectory-recorder';

/** How long the answer waits for tokens of a payload store that fails. */
const READ_DEADLINE_MS = 10_000;
/** Sessions of one call of `/sessions/batch_delete`. */
const MAX_DELETED = 1_024;

/** Sessions that are recorded, and their trajectories. */
@Injectable()
export class TrajectoryRoutes {
  readonly routes: Routes = {
    'POST /sessions': { answer: (exchange) => this.open(exchange) },
    'DELETE /sessions/{id}': { answer: (exchange) => this.delete(exchange) },
    // `/sessions/{id}` before it names the session.
    'GET /trajectory': { answer: (exchange) => this.send(exchange, (read) => this.piecesOf(read)) },
    // Of the client of rllm.
    'GET /traces': { answer: (exchange) => this.traces(exchange) },
    'POST /sessions/batch_delete': { answer: (exchange) => this.deleteAll(exchange) },
    // Its client calls this before it reads traces: here a turn is recorded before its response ends.
    'POST /admin/flush': { answer: ({ response }) => sendJson(response, 200, { status: 'flushed' }) },
  };

  private readonly get = (ref: string): Promise<Buffer> =>
    withRetry(() => this.payloads.get(ref), { deadlineMs: READ_DEADLINE_MS });

  constructor(
    private readonly recorder: TrajectoryRecorder,
    private readonly trajectories: TrajectoryStore,
    private readonly payloads: PayloadStore,
    private readonly controlPlane: ControlPlane,
    private readonly config: GatewayConfig,
  ) {}

  private async open({ body, caller, response }: Exchange): Promise<void> {
    const given = body.session_id ?? undefined;
    const sessionId = checkedSession(given ?? randomUUID(), 'session_id');
    const job: JobId = checkedJob(body.job ?? undefined, 'job');
    // The gateway of rllm sets them in each request of the session.
    if (isSet(body.sampling_params)) {
      throw invalidField('sampling_params', 'of a session are not supported: send them with each request');
    }
    const { made, stamp } = await this.recorder.open(sessionId, caller.tokenId, job, given === undefined);
    const path = `/sessions/${encodeURIComponent(sessionId)}/v1`;
    sendJson(response, made ? 201 : 200, { session_id: sessionId, path, stamp });
  }

  /** Also without such a session, since a client may repeat the call. An operator ends the session of its owner. */
  private async delete({ pathId, caller, response }: Exchange): Promise<void> {
    const isDeleted = await this.forget(checkedSession(pathId, 'session'), caller);
    sendJson(response, 200, { deleted: isDeleted ? 1 : 0 });
  }

  private async deleteAll({ body, caller, response }: Exchange): Promise<void> {
    const { session_ids: ids } = body;
    if (!Array.isArray(ids) || ids.length > MAX_DELETED) {
      throw invalidField('session_ids', `must be a list of at most ${MAX_DELETED} ids`);
    }
    const sessions = ids.map((id, index) => checkedSession(id, `session_ids.${index}`));
    let deleted = 0;
    for (const session of sessions) deleted += (await this.forget(session, caller)) ? 1 : 0;
    sendJson(response, 200, { deleted });
  }

  /** @returns whether it had a trajectory */
  private async forget(sessionId: string, caller: Caller): Promise<boolean> {
    const id = trajectoryIdOf(sessionId);
    const isOperator = includesRole(caller.role, 'operator');
    const { about } = isOperator ? await this.trajectories.read(this.config.pool, { id }) : {};
    const tokenId = about?.tokenId ?? caller.tokenId;
    // Before the delete, which removes the owner that a repeat needs.
    await this.controlPlane.call('lb.finish-session', { sessionId: boundSession(sessionId, tokenId) });
    return (await this.trajectories.delete(this.config.pool, { id, tokenId })).deleted;
  }

  private traces(exchange: Exchange): Promise<void> {
    const limit = readLimit(new URL(exchange.request.url!, 'http://gateway').searchParams);
    return this.send(exchange, (read) => this.listOf(readTraces(read, this.get, limit)));
  }

  private async *listOf(items: AsyncIterable<object>): AsyncGenerator<string> {
    let separator = '[';
    for await (const item of items) {
      yield separator + JSON.stringify(item);
      separator = ',';
    }
    yield separator === '[' ? '[]' : ']';
  }

  /** Answers with the JSON that is made of the trajectory of the caller's session. */
  private async send(
    { caller, response }: Pick<Exchange, 'caller' | 'response'>,
    write: (read: TrajectoryRead) => AsyncIterable<string>,
  ): Promise<void> {
    const id = trajectoryIdOf(checkedSession(caller.sessionId, 'session'));
    const { pool } = this.config;
    const read = await this.trajectories.read(pool, { id, stamp: this.trajectories.seenStamp(pool) });
    const mayRead = read.about?.tokenId === caller.tokenId || includesRole(caller.role, 'operator');
    if (read.about === undefined || !mayRead) {
      throw new BroomwagonError('SESSION_NOT_FOUND', 'No session of this key is recorded under this id');
    }
    response.writeHead(200, { 'content-type': 'application/json' });
    try {
      await pipeline(Readable.from(write(read)), response);
    } catch (error) {
      // A JSON without its end tells the client of an error; a client that has gone is none.
      if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
    }
  }

  private async *piecesOf({
    about,
    turns = [],
    missing = [],
    setBacks,
    stamp,
  }: TrajectoryRead): AsyncGenerator<string> {
    const head = { session_id: about!.sessionId, job: about!.job, created_at_ms: about!.createdAtMs, stamp };
    yield `${JSON.stringify(head).slice(0, -1)},"branches":[`;
    const reader = new BranchReader(this.get, setBacks);
    let separator = '';
    for (const branch of branchesOf(turns)) {
      const contents = await reader.next(branch);
      if (contents === undefined) continue;
      yield separator + JSON.stringify(contents);
      separator = ',';
    }
    const notBegun = missing.map(({ turn, startedAtMs, reason }) => ({ turn, reason, started_at_ms: startedAtMs }));
    yield `],"missing":${JSON.stringify([...notBegun, ...reader.gaps.values()])}}`;
  }
}
