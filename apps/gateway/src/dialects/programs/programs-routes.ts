import { Injectable } from '@nestjs/common';
import type { ServerId, SessionStatus } from '@broomwagon/contracts';
import { ControlPlane } from '@broomwagon/generation';
import { finishSession } from '../../answers/finish-session';
import { boundSession } from '../../core/bound-session';
import { poolServers } from '../../fleet/pool-servers';
import type { Exchange, Routes } from '../../http/route';
import { sendJson } from '../../http/send-json';

/** Session as ThunderAgent lists its programs; null: unknown. */
interface Program {
  /** Address of the engine. */
  backend: string | null;
  /** Characters of the last request, which are not counted here. */
  context_len: null;
  total_tokens: number | null;
  /** Turns, which are not counted here. */
  step_count: null;
  /** `reasoning`: a call runs or waits; `acting`: between two calls. */
  status: 'reasoning' | 'acting';
  state: 'active' | 'paused';
}

/** Routes of ThunderAgent besides the routes of OpenAI: a program is a session of the caller's key. */
@Injectable()
export class ProgramsRoutes {
  readonly routes: Routes = {
    'GET /programs': { answer: (exchange) => this.list(exchange) },
    'POST /programs/release': { answer: (exchange) => this.release(exchange) },
  };

  constructor(private readonly controlPlane: ControlPlane) {}

  private async list({ response, caller }: Exchange): Promise<void> {
    const servers = await poolServers(this.controlPlane);
    const endpoints = new Map(servers.map(({ serverId, endpoint }) => [serverId, endpoint]));
    const prefix = boundSession('', caller.tokenId);
    const programs: [id: string, program: Program][] = [];
    let cursor: string | undefined;
    do {
      const page = await this.controlPlane.call('lb.sessions', { cursor });
      for (const session of page.sessions) {
        const { sessionId } = session;
        if (sessionId.startsWith(prefix))
          programs.push([sessionId.slice(prefix.length), toProgram(session, endpoints)]);
      }
      ({ cursor } = page);
    } while (cursor !== undefined);
    sendJson(response, 200, Object.fromEntries(programs));
  }

  private async release({ response, caller, body }: Exchange): Promise<void> {
    const named = body.session_id ?? caller.sessionId;
    const { sessionId, finished } = await finishSession(this.controlPlane, caller, named, 'program_id');
    sendJson(response, 200, { program_id: sessionId, released: finished });
  }
}

function toProgram(
  { serverId, leases, contextTokens, paused, waiting }: SessionStatus,
  endpoints: ReadonlyMap<ServerId, string>,
): Program {
  return {
    backend: (serverId !== undefined && endpoints.get(serverId)) || null,
    context_len: null,
    total_tokens: contextTokens ?? null,
    step_count: null,
    status: leases > 0 || waiting === true ? 'reasoning' : 'acting',
    state: paused === true ? 'paused' : 'active',
  };
}
