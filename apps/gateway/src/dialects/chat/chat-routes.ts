import { Injectable } from '@nestjs/common';
import { GenerationResponder } from '../../answers/generation-responder';
import { SessionSampling } from '../../answers/session-sampling';
import type { Exchange, Routes } from '../../http/route';
import { PassedRequests } from '../passed/passed-requests';
import { ChatFormat } from './chat-reply';
import { readChatRequest } from './chat-request';
import { declaredFields, findPassed, knownFields } from '../passed/passed-request';
import { MAX_LOGPROBS, OPENAI_FIELDS, PASSED_SAMPLING } from '../vllm/passed-completion';
import { UNCONTINUED } from '../vllm/vllm-sampling';

/** Fields that the engine answers with values of one call. On SGLang, `input_ids` replaces the rendered messages. */
const PASSED = ['input_ids', 'return_meta_info', 'return_prompt_text', 'return_prompt_token_ids'];
const KNOWN = knownFields(
  [...declaredFields('/v1/chat/completions'), ...UNCONTINUED, ...OPENAI_FIELDS],
  [...PASSED_SAMPLING, ...PASSED],
);

@Injectable()
export class ChatRoutes {
  readonly routes: Routes = {
    'POST /v1/chat/completions': { answer: (exchange) => this.answer(exchange) },
    // The gateway of AReaL also has this path.
    'POST /chat/completions': { answer: (exchange) => this.answer(exchange) },
  };

  constructor(
    private readonly responder: GenerationResponder,
    private readonly passed: PassedRequests,
    private readonly sessions: SessionSampling,
  ) {}

  private answer(exchange: Exchange): Promise<void> {
    return this.sessions.answer(exchange, {}, (one) => this.chat(one));
  }

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

/** The field because of which a chat is passed on; undefined: the gateway reads the chat. */
function findPassedChat(body: Record<string, unknown>): string | undefined {
  const { top_logprobs: alternatives, ...fields } = body;
  const isBeyond = typeof alternatives === 'number' && (alternatives > MAX_LOGPROBS || alternatives < 0);
  return isBeyond ? 'top_logprobs' : findPassed(fields, KNOWN);
}
