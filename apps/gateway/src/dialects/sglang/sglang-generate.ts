import { Injectable } from '@nestjs/common';
import type { BroomwagonError } from '@broomwagon/contracts';
import { GatewayConfig } from '../../gateway.config';
import { BEGIN, type Format } from '../../answers/format';
import { GenerationResponder } from '../../answers/generation-responder';
import { type SamplingForm, SessionSampling } from '../../answers/session-sampling';
import type { Exchange, Routes } from '../../http/route';
import { errorBody, toHttpStatus } from '../../http/send-json';
import { PassedRequests } from '../passed/passed-requests';
import { readGenerateRequest } from './generate-request';
import { buildReply, runningReply } from './generate-reply';
import { findPassedGenerate } from './passed-generate';

const SAMPLING: SamplingForm = {
  parent: 'sampling_params',
  names: { max_tokens: 'max_new_tokens', min_tokens: 'min_new_tokens', seed: 'sampling_seed' },
};

@Injectable()
export class SglangGenerate {
  readonly routes: Routes = {
    'POST /generate': {
      errorBody: sglangError,
      answer: (exchange) => this.sessions.answer(exchange, SAMPLING, (one) => this.generate(one)),
    },
  };

  private readonly single: Format;
  /** Format of several prompts, or of several samples of one prompt. */
  private readonly batch: Format;

  constructor(
    private readonly responder: GenerationResponder,
    private readonly passed: PassedRequests,
    private readonly sessions: SessionSampling,
    config: GatewayConfig,
  ) {
    const failure = (error: BroomwagonError) => ({ error: sglangError(error) });
    const isCumulative = !config.incrementalStreams;
    this.single = { chunk: buildReply, running: (generation) => runningReply(generation), failure, isCumulative };
    this.batch = {
      whole: (generations) => generations.map((generation) => buildReply(generation, BEGIN)),
      chunk: (generation, from, index) => ({ index, ...buildReply(generation, from) }),
      running: runningReply,
      failure,
      isCumulative,
    };
  }

  private generate(exchange: Exchange): Promise<void> {
    const { body } = exchange;
    const [reason, prompt] = [findPassedGenerate(body), body.input_ids ?? body.text];
    const passed = this.passed.pass(exchange, { paths: ['/generate'], reason, prompt, idField: 'rid' });
    if (passed !== undefined) return passed;
    const request = readGenerateRequest(exchange.body, exchange.request.headers, exchange.caller);
    return this.responder.respond(exchange, request, request.isBatch ? this.batch : this.single);
  }
}

/** An error in the form of SGLang: its code is always the HTTP status. */
function sglangError(error: BroomwagonError): object {
  return { ...errorBody(error), code: toHttpStatus(error) };
}
