import { Injectable } from '@nestjs/common';
import { GenerationResponder } from '../../answers/generation-responder';
import type { Exchange, Routes } from '../../http/route';
import { PassedRequests } from '../passed/passed-requests';
import { ChatFormat } from './chat-reply';
import { readChatRequest } from './chat-request';
import { findPassedChat } from './passed-chat';

/** `/v1/chat/completions`. */
@Injectable()
export class ChatRoutes {
  readonly routes: Routes = {
    'POST /v1/chat/completions': { answer: (exchange) => this.chat(exchange) },
    // The gateway of AReaL also has this path.
    'POST /chat/completions': { answer: (exchange) => this.chat(exchange) },
  };

  constructor(
    private readonly responder: GenerationResponder,
    private readonly passed: PassedRequests,
  ) {}

  private chat(exchange: Exchange): Promise<void> {
    const { body } = exchange;
    const idField = body.rid === undefined ? ('request_id' as const) : ('rid' as const);
    const route = { paths: ['/v1/chat/completions'], reason: findPassedChat(body), prompt: body.messages, idField };
    const passed = this.passed.pass(exchange, route);
    if (passed !== undefined) return passed;
    const request = readChatRequest(exchange.body, exchange.request.headers, exchange.caller);
    return this.responder.respond(exchange, request, new ChatFormat(request.id, request.shape));
  }
}
