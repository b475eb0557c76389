import { Injectable } from '@nestjs/common';
import { BroomwagonError } from '@broomwagon/contracts';
import { ControlPlane } from '@broomwagon/generation';
import { GenerationResponder } from '../http/generation-responder';
import type { Exchange, Routes } from '../http/route';
import { sendJson } from '../http/send-json';
import { CompletionFormat } from './completion-reply';
import { readCompletionRequest } from './completion-request';
import { tokenReplyOf } from './token-reply';
import { readTokenRequest } from './token-request';

/** The routes of vLLM: token ids in and out, completions, and the models of the pool. */
@Injectable()
export class VllmRoutes {
  readonly routes: Routes = {
    'POST /inference/v1/generate': { answer: (exchange) => this.generate(exchange) },
    'POST /v1/completions': { answer: (exchange) => this.complete(exchange) },
    'GET /v1/models': { answer: (exchange) => this.models(exchange) },
  };
  private readonly startedAt = Math.floor(Date.now() / 1_000);

  constructor(
    private readonly responder: GenerationResponder,
    private readonly controlPlane: ControlPlane,
  ) {}

  private generate(exchange: Exchange): Promise<void> {
    const request = readTokenRequest(exchange.body, exchange.request.headers, exchange.caller);
    return this.responder.respond(exchange, request, { chunk: tokenReplyOf });
  }

  private complete(exchange: Exchange): Promise<void> {
    const request = readCompletionRequest(exchange.body, exchange.request.headers, exchange.caller);
    return this.responder.respond(exchange, request, new CompletionFormat(request.id, request.shape));
  }

  private async models({ response }: Exchange): Promise<void> {
    const { servers } = await this.controlPlane.call('server.list', {});
    if (servers.length === 0) throw new BroomwagonError('NO_SERVER_AVAILABLE', 'The pool has no server');
    const lengths = new Map<string, number | undefined>();
    for (const { model = 'default', capabilities } of servers) {
      const length = Math.min(lengths.get(model) ?? Infinity, capabilities?.maxModelTokens ?? Infinity);
      lengths.set(model, Number.isFinite(length) ? length : undefined);
    }
    const about = { object: 'model', created: this.startedAt, owned_by: 'broomwagon' };
    const data = [...lengths].map(([id, maxModelTokens]) => ({ id, ...about, max_model_len: maxModelTokens }));
    sendJson(response, 200, { object: 'list', data });
  }
}
