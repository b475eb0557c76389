import { Injectable } from '@nestjs/common';
import { readChatRequest } from '../chat/chat-request';
import { GenerationResponder } from '../../answers/generation-responder';
import { type SamplingForm, SessionSampling } from '../../answers/session-sampling';
import type { Exchange, Routes } from '../../http/route';
import { ResponsesFormat } from './responses-reply';
import { chatOfResponses } from './responses-request';

const SAMPLING: SamplingForm = { names: { max_tokens: 'max_output_tokens' } };

/** `/v1/responses` of OpenAI, translated to chats; nothing is stored. */
@Injectable()
export class ResponsesRoutes {
  readonly routes: Routes = {
    'POST /v1/responses': { answer: (exchange) => this.answer(exchange) },
    // The gateway of AReaL also has this path.
    'POST /responses': { answer: (exchange) => this.answer(exchange) },
  };

  constructor(
    private readonly responder: GenerationResponder,
    private readonly sessions: SessionSampling,
  ) {}

  private answer(exchange: Exchange): Promise<void> {
    return this.sessions.answer(exchange, SAMPLING, (one) => this.create(one));
  }

  private create(exchange: Exchange): Promise<void> {
    const { body, request, caller } = exchange;
    const chat = readChatRequest(chatOfResponses(body), request.headers, caller);
    return this.responder.respond(exchange, chat, new ResponsesFormat(chat.id, body));
  }
}
