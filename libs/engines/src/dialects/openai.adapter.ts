import { BroomwagonError } from '@broomwagon/contracts';
import type { EngineDescription, EngineLoad, GenerationRequest } from '../engine-adapter';
import { HttpEngineAdapter, type RouteCall, type RunPlan } from './http-adapter';
import { wireSampling } from './sampling';

/** Any other server with the OpenAI routes: text and messages only, stopped by closing the connection. */
export class OpenAiAdapter extends HttpEngineAdapter {
  readonly dialect = 'openai';

  async probe(signal?: AbortSignal): Promise<EngineDescription> {
    const model = await this.listModel(signal);
    return {
      model: model.id,
      capabilities: {
        tokenIdsIn: false,
        tokenIdsOut: false,
        logprobs: true,
        abortById: false,
        // There is no way to ask; it is what the servers we know do.
        abortOnDisconnect: true,
        loadReport: false,
        prefixCacheReset: false,
        tokenize: false,
        pauseModes: [],
        dataParallelRanks: 1,
        maxModelTokens: model.maxModelTokens,
      },
    };
  }

  abort(): Promise<boolean> {
    return Promise.resolve(false);
  }

  load(): Promise<EngineLoad> {
    return this.cannot('report their load');
  }

  pause(): Promise<void> {
    return this.cannot('be paused');
  }

  resume(): Promise<void> {
    return this.cannot('be paused');
  }

  resetPrefixCache(): Promise<void> {
    return this.cannot('reset their prefix cache');
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
