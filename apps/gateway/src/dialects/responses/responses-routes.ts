import { Injectable } from '@nestjs/common';
import { readChatRequest } from '../chat/chat-request';
import { GenerationResponder } from '../../answers/generation-responder';
import type { Exchange, Routes } from '../../http/route';
import { ResponsesFormat } from './responses-reply';
import { chatOfResponses } from './responses-request';

/** `/v1/responses` of OpenAI, translated to chats; nothing is stored. */
@Injectable()
export class ResponsesRoutes {
  readonly routes: Routes = {
    'POST /v1/responses': { answer: (exchange) => this.create(exchange) },
    // The gateway of AReaL also has this path.
    'POST /responses': { answer: (exchange) => this.create(exchange) },
  };

  constructor(private readonly responder: GenerationResponder) {}

  private create(exchange: Exchange): Promise<void> {
    const { body, request, caller } = exchange;
    const chat = readChatRequest(chatOfResponses(body), request.headers, caller);
    return this.responder.respond(exchange, chat, new ResponsesFormat(chat.id, body));
  }
}
