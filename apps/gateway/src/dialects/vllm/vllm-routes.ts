import { Injectable } from '@nestjs/common';
import { BroomwagonError, includesRole, invalidField } from '@broomwagon/contracts';
import { ANY_MODEL } from '@broomwagon/engines';
import { ControlPlane } from '@broomwagon/generation';
import { poolServers } from '../../fleet/pool-servers';
import { AbortBroadcast } from '../../core/abort-broadcast';
import { GenerationResponder } from '../../answers/generation-responder';
import { SessionSampling } from '../../answers/session-sampling';
import type { Exchange, Routes } from '../../http/route';
import { sendJson } from '../../http/send-json';
import { PassedRequests } from '../passed/passed-requests';
import { CompletionFormat } from './completion-reply';
import { readCompletionRequest } from './completion-request';
import { findPassedCompletion } from './passed-completion';
import { TOKENS_SAMPLING, tokensRoute } from './passed-tokens';
import { buildTokenReply } from './token-reply';
import { readTokenRequest } from './token-request';

const MAX_ABORTED_IDS = 4_096;
/** The id of a request as the engine writes it: prefix of the route, id of the request, index of the prompt. */
const ENGINE_NAME = /^(?:chat)?cmpl-(.+?)(?:-0)?$/;

/** The routes of vLLM: token ids in and out, completions, and the models of the pool. */
@Injectable()
export class VllmRoutes {
  readonly routes: Routes = {
    'POST /inference/v1/generate': {
      answer: (exchange) => this.sessions.answer(exchange, TOKENS_SAMPLING, (one) => this.generate(one)),
    },
    'POST /v1/completions': {
      answer: (exchange) => this.sessions.answer(exchange, {}, (one) => this.complete(one)),
    },
    'POST /abort_requests': { answer: (exchange) => this.abort(exchange) },
    'GET /load': { answer: (exchange) => this.load(exchange) },
    'GET /v1/models': { answer: (exchange) => this.models(exchange) },
    'GET /v1/models/{id}': { idMayHaveSlashes: true, answer: (exchange) => this.model(exchange) },
  };
  private readonly startedAt = Math.floor(Date.now() / 1_000);

  constructor(
    private readonly responder: GenerationResponder,
    private readonly passed: PassedRequests,
    private readonly sessions: SessionSampling,
    private readonly controlPlane: ControlPlane,
    private readonly aborts: AbortBroadcast,
  ) {}

  private generate(exchange: Exchange): Promise<void> {
    const passed = this.passed.pass(exchange, tokensRoute(exchange.body, ['/inference/v1/generate']));
    if (passed !== undefined) return passed;
    const request = readTokenRequest(exchange.body, exchange.request.headers, exchange.caller);
    return this.responder.respond(exchange, request, { chunk: buildTokenReply });
  }

  private complete(exchange: Exchange): Promise<void> {
    const { body } = exchange;
    const reason = findPassedCompletion(body);
    const route = { paths: ['/v1/completions'], reason, prompt: body.prompt, idField: 'request_id' as const };
    const passed = this.passed.pass(exchange, route);
    if (passed !== undefined) return passed;
    const request = readCompletionRequest(exchange.body, exchange.request.headers, exchange.caller);
    return this.responder.respond(exchange, request, new CompletionFormat(request.id, request.shape));
  }

  /**
   * Aborts requests by id; no list, or an empty list, means all requests, as in vLLM. The answer does not show whether
   * the requests exist.
   */
  private abort({ response, caller, body }: Exchange): void {
    const ids = body.request_ids ?? [];
    if (!Array.isArray(ids) || ids.length > MAX_ABORTED_IDS || !ids.every((id) => typeof id === 'string')) {
      throw invalidField('request_ids', `must be a list of at most ${MAX_ABORTED_IDS} texts`);
    }
    const tokenId = includesRole(caller.role, 'operator') ? undefined : caller.tokenId;
    if (ids.length === 0) this.aborts.abort({ all: true, tokenId });
    const names = ids.flatMap((id: string) => [id, ...(ENGINE_NAME.exec(id)?.slice(1) ?? [])]);
    for (const id of names) this.aborts.abort({ id, tokenId });
    sendJson(response, 200, {});
  }

  /** Requests of the whole pool, as the one number that vLLM reports. */
  private async load({ response }: Exchange): Promise<void> {
    const { leases, waiters } = await this.controlPlane.call('lb.status', {});
    sendJson(response, 200, { server_load: leases + waiters });
  }

  private async models({ response }: Exchange): Promise<void> {
    sendJson(response, 200, { object: 'list', data: await this.modelCards() });
  }

  private async model({ response, pathId }: Exchange): Promise<void> {
    const card = (await this.modelCards()).find(({ id }) => id === pathId);
    if (card === undefined) throw new BroomwagonError('MODEL_NOT_FOUND', 'No server of the pool has this model');
    sendJson(response, 200, card);
  }

  private async modelCards(): Promise<{ id: string }[]> {
    const servers = await poolServers(this.controlPlane);
    if (servers.length === 0) throw new BroomwagonError('NO_SERVER_AVAILABLE', 'The pool has no server');
    const lengths = new Map<string, number | undefined>();
    for (const { model = 'default', models = [model], capabilities } of servers) {
      for (const name of models) {
        if (name === ANY_MODEL) continue;
        const length = Math.min(lengths.get(name) ?? Infinity, capabilities?.maxModelTokens ?? Infinity);
        lengths.set(name, Number.isFinite(length) ? length : undefined);
      }
    }
    const about = { object: 'model', created: this.startedAt, owned_by: 'broomwagon' };
    return [...lengths].map(([id, maxModelTokens]) => ({ id, ...about, max_model_len: maxModelTokens }));
  }
}
