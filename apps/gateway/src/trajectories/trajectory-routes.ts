import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { includesRole, invalidField, type JobId } from '@broomwagon/contracts';
import { ControlPlane } from '@broomwagon/generation';
import { toTrajectoryId, TrajectoryStore } from '@broomwagon/state';
import { GatewayConfig } from '../gateway.config';
import { checkedSession } from '../answers/placement';
import { SessionSampling } from '../answers/session-sampling';
import { boundSession } from '../core/bound-session';
import { jsonText, requiredObject } from '../fields/read-fields';
import type { Exchange, Routes } from '../http/route';
import { sendJson } from '../http/send-json';
import type { Caller } from '../keys/api-keys';
import { checkSessionSampling } from './session-parameters';
import { BranchReader, listBranches } from './trajectory-branches';
import { type FoundTrajectory, TrajectoryReader } from './trajectory-reader';
import { checkedJob, TrajectoryRecorder } from '../core/recording/trajectory-recorder';

/** Maximum size of the `metadata` of a session as JSON, bytes: lists of sessions contain the metadata. */
const MAX_METADATA_BYTES = 4_096;
/** Maximum sessions of one call of `/sessions/batch_delete`. */
const MAX_DELETED = 1_024;

/** Sessions that are recorded, and their trajectories. */
@Injectable()
export class TrajectoryRoutes {
  readonly routes: Routes = {
    'POST /sessions': { answer: (exchange) => this.open(exchange) },
    'DELETE /sessions/{id}': { answer: (exchange) => this.delete(exchange) },
    // The path `/sessions/{id}` before this path sets the session.
    'GET /trajectory': { answer: (exchange) => this.trajectory(exchange) },
    'POST /sessions/batch_delete': { answer: (exchange) => this.deleteAll(exchange) },
  };

  constructor(
    private readonly recorder: TrajectoryRecorder,
    private readonly reader: TrajectoryReader,
    private readonly sessions: SessionSampling,
    private readonly trajectories: TrajectoryStore,
    private readonly controlPlane: ControlPlane,
    private readonly config: GatewayConfig,
  ) {}

  private async open({ body, caller, response }: Exchange): Promise<void> {
    const given = body.session_id ?? undefined;
    const sessionId = checkedSession(given ?? randomUUID(), 'session_id');
    const job: JobId = checkedJob(body.job ?? undefined, 'job');
    const sampling = checkSessionSampling(body.sampling_params);
    const about = { isDrawn: given === undefined, metadata: checkMetadata(body.metadata ?? {}), sampling };
    const { made, samplingAgeMs, stamp } = await this.recorder.open(sessionId, caller.tokenId, job, about);
    await this.sessions.awaitReplicas(samplingAgeMs);
    const path = `/sessions/${encodeURIComponent(sessionId)}/v1`;
    // The clients of miles and rllm read the status 200; the client of rllm also reads `url`.
    sendJson(response, 200, { session_id: sessionId, path, url: path, created: made, stamp });
  }

  /**
   * Deletes a session. A missing session is no error, since a client may repeat the call. An operator may delete
   * sessions of every key.
   */
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

  /** @returns whether the session had a trajectory */
  private async forget(sessionId: string, caller: Caller): Promise<boolean> {
    const id = toTrajectoryId(sessionId);
    const isOperator = includesRole(caller.role, 'operator');
    const { about } = isOperator ? await this.trajectories.read(this.config.pool, { id }) : {};
    const tokenId = about?.tokenId ?? caller.tokenId;
    // This call precedes the delete, which removes the owner that a repeat needs.
    await this.controlPlane.call('lb.finish-session', { sessionId: boundSession(sessionId, tokenId) });
    return (await this.trajectories.delete(this.config.pool, { id, tokenId })).deleted;
  }

  private async trajectory({ response, caller }: Pick<Exchange, 'response' | 'caller'>): Promise<void> {
    const read = await this.reader.read(caller.sessionId, caller);
    await this.reader.send(response, this.iteratePieces(read));
  }

  private async *iteratePieces({
    about,
    turns = [],
    missing = [],
    setBacks,
    stamp,
  }: FoundTrajectory): AsyncGenerator<string> {
    const head = { session_id: about.sessionId, job: about.job, created_at_ms: about.createdAtMs, stamp };
    yield `${JSON.stringify(head).slice(0, -1)},"branches":[`;
    const reader = new BranchReader(this.reader.get, setBacks);
    let separator = '';
    for (const branch of listBranches(turns)) {
      const contents = await reader.next(branch);
      if (contents === undefined) continue;
      yield separator + JSON.stringify(contents);
      separator = ',';
    }
    const notBegun = missing.map(({ turn, startedAtMs, reason }) => ({ turn, reason, started_at_ms: startedAtMs }));
    yield `],"missing":${JSON.stringify([...notBegun, ...reader.gaps.values()])}}`;
  }
}

/** @throws BroomwagonError VALIDATION_FAILED */
function checkMetadata(value: unknown): object {
  const metadata = requiredObject(value, 'metadata');
  if (Buffer.byteLength(jsonText(metadata, 'metadata')) <= MAX_METADATA_BYTES) return metadata;
  throw invalidField('metadata', `must have at most ${MAX_METADATA_BYTES} bytes as JSON`);
}
