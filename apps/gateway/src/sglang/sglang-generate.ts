import { Injectable } from '@nestjs/common';
import { GatewayConfig } from '../gateway.config';
import { GenerationResponder } from '../http/generation-responder';
import type { Exchange, Routes } from '../http/route';
import { readGenerateRequest } from './generate-request';
import { replyOf } from './generate-reply';

/** `/generate` of SGLang. */
@Injectable()
export class SglangGenerate {
  readonly routes: Routes = { 'POST /generate': { answer: (exchange) => this.generate(exchange) } };

  constructor(
    private readonly responder: GenerationResponder,
    private readonly config: GatewayConfig,
  ) {}

  private generate(exchange: Exchange): Promise<void> {
    const request = readGenerateRequest(exchange.body, exchange.request.headers, exchange.caller);
    return this.responder.respond(exchange, request, {
      chunk: replyOf,
      isCumulative: !this.config.incrementalStreams,
    });
  }
}
