import { Injectable } from '@nestjs/common';
import { BroomwagonError, includesRole, isBroomwagonError } from '@broomwagon/contracts';
import { TrajectoryStore, type ListedTrajectory } from '@broomwagon/state';
import { GatewayConfig } from '../gateway.config';
import type { Exchange, Routes } from '../http/route';
import { sendJson } from '../http/send-json';
import { parseTraceId, readList, readTraces } from './rllm-traces';
import { TrajectoryReader } from './trajectory-reader';

/** Routes by which the client of rllm reads sessions and their turns. */
@Injectable()
export class RllmRoutes {
  readonly routes: Routes = {
    'GET /sessions': { answer: (exchange) => this.list(exchange) },
    'GET /sessions/{id}': { answer: (exchange) => this.describe(exchange) },
    // The path `/sessions/{id}` before this path sets the session.
    'GET /traces': { answer: (exchange) => this.traces(exchange) },
    'GET /traces/{id}': { answer: (exchange) => this.trace(exchange) },
    // The client of rllm calls this before it reads traces: here a turn is recorded before its response ends.
    'POST /admin/flush': { answer: ({ response }) => sendJson(response, 200, { status: 'flushed' }) },
  };

  constructor(
    private readonly reader: TrajectoryReader,
    private readonly trajectories: TrajectoryStore,
    private readonly config: GatewayConfig,
  ) {}

  /** Lists the sessions of the caller's key, and for an operator the sessions of all keys; the newest first. */
  private async list({ request, response, caller }: Exchange): Promise<void> {
    const { limit, sinceMs = 0 } = readList(toQuery(request.url!), true);
    const tokenId = includesRole(caller.role, 'operator') ? undefined : caller.tokenId;
    // A scan may find a session twice.
    const found = new Map<string, ListedTrajectory>();
    for await (const { sessions } of this.trajectories.pages('list', this.config.pool, { tokenId })) {
      for (const session of sessions) {
        if (session.about.createdAtMs >= sinceMs) found.set(session.about.sessionId, session);
      }
    }
    const newest = [...found.values()].toSorted((a, b) => b.about.createdAtMs - a.about.createdAtMs);
    sendJson(response, 200, newest.slice(0, limit).map(toSessionInfo));
  }

  private async describe({ response, caller, pathId }: Exchange): Promise<void> {
    const { about, sampling, turns = [], missing = [] } = await this.reader.read(pathId, caller);
    sendJson(response, 200, toSessionInfo({ about, sampling, turns: turns.length + missing.length }));
  }

  private async traces({ request, response, caller }: Exchange): Promise<void> {
    const { limit } = readList(toQuery(request.url!), false);
    const read = await this.reader.read(caller.sessionId, caller).catch((error: unknown) => {
      // The trainer of rllm opens no session: an agent that made no call, or whose session was deleted, has no traces.
      const mayBeEmpty = this.config.recordSessions === 'path' && isBroomwagonError(error, 'SESSION_NOT_FOUND');
      if (!mayBeEmpty) throw error;
    });
    if (read === undefined) return sendJson(response, 200, []);
    await this.reader.send(response, toJsonList(readTraces(read, this.reader.get, { limit })));
  }

  private async trace({ response, caller, pathId }: Exchange): Promise<void> {
    const wanted = parseTraceId(pathId!);
    if (wanted !== undefined) {
      const read = await this.reader.read(wanted.sessionId, caller);
      for await (const trace of readTraces(read, this.reader.get, { limit: 1, number: wanted.number })) {
        return sendJson(response, 200, trace);
      }
    }
    throw new BroomwagonError('SESSION_NOT_FOUND', 'No trace of a session of this key has this id');
  }
}

const toQuery = (url: string): URLSearchParams => new URL(url, 'http://gateway').searchParams;

function toSessionInfo({ about, turns, sampling }: ListedTrajectory): object {
  const { sessionId, job, createdAtMs, metadata = {} } = about;
  const info = { session_id: sessionId, trace_count: turns, created_at: createdAtMs / 1_000, metadata, job };
  return { sampling_params: sampling, ...info };
}

async function* toJsonList(items: AsyncIterable<object>): AsyncGenerator<string> {
  let separator = '[';
  for await (const item of items) {
    yield separator + JSON.stringify(item);
    separator = ',';
  }
  yield separator === '[' ? '[]' : ']';
}
