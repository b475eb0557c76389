import { Injectable } from '@nestjs/common';
import { BroomwagonError, invalidField } from '@broomwagon/contracts';
import { parseObject } from '@broomwagon/engines';
import { readChatRequest } from '../chat/chat-request';
import { GenerationResponder } from '../../answers/generation-responder';
import { isCount, jsonText } from '../../fields/read-fields';
import { type SamplingForm, SessionSampling } from '../../answers/session-sampling';
import type { Exchange, Routes } from '../../http/route';
import { sendJson } from '../../http/send-json';
import { TokenizerRoutes } from '../tokenizer/tokenizer-routes';
import { MessagesFormat, messagesError } from './messages-reply';
import { chatOfMessages } from './messages-request';

const SAMPLING: SamplingForm = { names: { stop: 'stop_sequences' } };

/** The API of Anthropic, translated to chats. */
@Injectable()
export class MessagesRoutes {
  readonly routes: Routes = {
    'POST /v1/messages': {
      errorBody: messagesError,
      hasErrorType: true,
      answer: (exchange) => this.sessions.answer(exchange, SAMPLING, (one) => this.create(one)),
    },
    'POST /v1/messages/count_tokens': {
      errorBody: messagesError,
      hasErrorType: true,
      answer: (exchange) => this.countTokens(exchange),
    },
  };

  constructor(
    private readonly responder: GenerationResponder,
    private readonly tokenizer: TokenizerRoutes,
    private readonly sessions: SessionSampling,
  ) {}

  private create(exchange: Exchange): Promise<void> {
    const body = chatOfMessages(exchange.body);
    if (body.max_tokens === undefined) throw invalidField('max_tokens', 'is missing');
    const request = readChatRequest(body, exchange.request.headers, exchange.caller);
    return this.responder.respond(exchange, request, new MessagesFormat(request.id, request.shape.model));
  }

  private async countTokens({ response, body }: Exchange): Promise<void> {
    const chat = chatOfMessages(body);
    const { status, text } = await this.tokenizer.ask('/tokenize', Buffer.from(jsonText(chat)), chat.model);
    if (status !== 200) {
      throw new BroomwagonError('ENGINE_REJECTED', `The engine did not count the tokens: it answered ${status}`);
    }
    const count = parseObject(text)?.count;
    if (!isCount(count, 0, Number.MAX_SAFE_INTEGER)) {
      throw new BroomwagonError('ENGINE_PROTOCOL', 'The engine answered /tokenize without a count of tokens');
    }
    sendJson(response, 200, { input_tokens: count });
  }
}
