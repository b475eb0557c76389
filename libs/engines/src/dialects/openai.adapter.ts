import { BroomwagonError } from '@broomwagon/contracts';
import type { EngineCapabilities, EngineLoad, GenerationRequest } from '../engine-adapter';
import { HttpEngineAdapter, type RouteCall, type RunPlan } from './http-adapter';
import { wireSampling } from './sampling';

/** Any other server with the OpenAI routes: text and messages only, stopped by closing the connection. */
export class OpenAiAdapter extends HttpEngineAdapter {
  readonly dialect = 'openai';

  async probe(signal?: AbortSignal): Promise<EngineCapabilities> {
    const model = await this.listModel(signal);
    return {
      dialect: this.dialect,
      model: model.id,
      maxModelTokens: model.maxModelTokens,
      tokenIdsIn: false,
      tokenIdsOut: false,
      logprobs: true,
      abortById: false,
      abortOnDisconnect: true,
      loadReport: false,
    };
  }

  abort(): Promise<boolean> {
    return Promise.resolve(false);
  }

  load(): Promise<EngineLoad> {
    return Promise.reject(new BroomwagonError('ENGINE_REJECTED', 'An OpenAI-compatible engine reports no load'));
  }

  override health(signal?: AbortSignal): Promise<void> {
    return this.requireHealthy('/v1/models', signal);
  }

  protected async route(request: GenerationRequest, plan: RunPlan): Promise<RouteCall> {
    const { prompt } = plan;
    if ('tokenIds' in prompt) {
      throw new BroomwagonError('ENGINE_REJECTED', 'An OpenAI-compatible engine takes no token ids', {
        field: 'prompt.promptTokenIds',
      });
    }
    const body = {
      ...wireSampling('openai', request.sampling, plan.minTokens),
      model: await this.model(),
      max_tokens: plan.budget,
      stream_options: { include_usage: true },
    };
    if ('text' in prompt) return this.completionRoute(prompt.text, body, request.sampling);
    return this.chatRoute(prompt.messages, prompt.continued, body, request.sampling);
  }
}
