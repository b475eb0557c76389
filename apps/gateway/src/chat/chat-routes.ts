import { Injectable } from '@nestjs/common';
import { GenerationResponder } from '../http/generation-responder';
import type { Exchange, Routes } from '../http/route';
import { passedRequest } from '../passed/passed-request';
import { ChatFormat } from './chat-reply';
import { readChatRequest } from './chat-request';
import { findPassedChat } from './passed-chat';

/** `/v1/chat/completions`. */
@Injectable()
export class ChatRoutes {
  readonly routes: Routes = {
    'POST /v1/chat/completions': { answer: (exchange) => this.chat(exchange) },
    // As in the gateway of AReaL.
    'POST /chat/completions': { answer: (exchange) => this.chat(exchange) },
  };

  constructor(private readonly responder: GenerationResponder) {}

  private chat(exchange: Exchange): Promise<void> {
    const { body, request: sent, caller } = exchange;
    const reason = findPassedChat(body);
    if (reason !== undefined) {
      const idField = body.rid === undefined ? ('request_id' as const) : ('rid' as const);
      const passed = { body, paths: ['/v1/chat/completions'], reason, prompt: body.messages, idField };
      return this.responder.respond(exchange, passedRequest(passed, sent.headers, caller));
    }
    const request = readChatRequest(exchange.body, exchange.request.headers, exchange.caller);
    return this.responder.respond(exchange, request, new ChatFormat(request.id, request.shape));
  }
}
