import { Injectable } from '@nestjs/common';
import { ControlPlane } from '@broomwagon/generation';
import { poolServers } from '../../fleet/pool-servers';
import type { Format } from '../../answers/format';
import { GenerationResponder } from '../../answers/generation-responder';
import { finishSession } from '../../answers/finish-session';
import { SessionSampling } from '../../answers/session-sampling';
import type { Exchange, Routes } from '../../http/route';
import { sendJson } from '../../http/send-json';
import { PassedRequests } from '../passed/passed-requests';
import { TOKENS_SAMPLING, tokensRoute } from './passed-tokens';
import { buildTokenReply } from './token-reply';
import { readTokenRequest } from './token-request';

/** Adds routed experts, which clients of SkyRL need in each answer. */
const withExperts: Format['chunk'] = (generation, from) => {
  const reply = buildTokenReply(generation, from);
  const choices = reply.choices.map((choice) => ({ ...choice, routed_experts: choice.routed_experts ?? null }));
  return { ...reply, choices };
};

/** Routes that the router of SkyRL has besides the routes of vLLM. */
@Injectable()
export class SkyRlRoutes {
  readonly routes: Routes = {
    'POST /skyrl/v1/generate': {
      answer: (exchange) => this.sessions.answer(exchange, TOKENS_SAMPLING, (one) => this.generate(one)),
    },
    'POST /finish_session': { answer: (exchange) => this.finish(exchange) },
    'GET /servers': { answer: (exchange) => this.servers(exchange) },
  };

  constructor(
    private readonly responder: GenerationResponder,
    private readonly passed: PassedRequests,
    private readonly sessions: SessionSampling,
    private readonly controlPlane: ControlPlane,
  ) {}

  /** Answers as `/inference/v1/generate` does, with the routed experts in the form of SkyRL. */
  private generate(exchange: Exchange): Promise<void> {
    // The server of SkyRL has this route itself, with its own form of the experts.
    const route = tokensRoute(exchange.body, ['/skyrl/v1/generate', '/inference/v1/generate']);
    const passed = this.passed.pass(exchange, route);
    if (passed !== undefined) return passed;
    const request = readTokenRequest(exchange.body, exchange.request.headers, exchange.caller);
    const inputs = request.inputs.map((input) => {
      const engineFields = { ...input.prompt.engineFields, return_routed_experts: true };
      return { ...input, prompt: { ...input.prompt, engineFields }, packsExperts: true };
    });
    return this.responder.respond(exchange, { ...request, inputs }, { chunk: withExperts });
  }

  /** Removes the session that the query or the body names: the next request of the session may go to any server. */
  private async finish({ request, response, caller, body }: Exchange): Promise<void> {
    const { searchParams } = new URL(request.url!, 'http://gateway');
    const named = searchParams.get('session_id') ?? body.session_id ?? caller.sessionId;
    const { finished } = await finishSession(this.controlPlane, caller, named, 'session_id');
    sendJson(response, 200, { status: 'ok', finished });
  }

  private async servers({ response }: Exchange): Promise<void> {
    const servers = await poolServers(this.controlPlane);
    sendJson(response, 200, { servers: servers.map(({ endpoint }) => endpoint) });
  }
}
