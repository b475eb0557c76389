import { BroomwagonError, isBroomwagonError } from '@broomwagon/contracts';
import type {
  EngineDescription,
  EngineReport,
  GenerateOptions,
  GenerationRequest,
  GenerationResult,
} from '../engine-adapter';
import { HttpEngineAdapter, type RouteCall, type RunPlan } from './http-adapter';
import { wireSampling } from './sampling';
import { StreamIntervals } from './stream-intervals';

/** Any other server with the OpenAI routes: only text and messages. A closed connection stops a request. */
export class OpenAiAdapter extends HttpEngineAdapter {
  readonly dialect = 'openai';
  protected override readonly intervals = new StreamIntervals(this.http);
  /** Name of the budget in chats. Newer servers refuse `max_tokens`: the first refusal changes the name. */
  private chatBudget: 'max_tokens' | 'max_completion_tokens' = 'max_tokens';

  async probe(signal?: AbortSignal): Promise<EngineDescription> {
    const model = await this.listModel(signal);
    return {
      model: model.id,
      models: model.models,
      capabilities: {
        tokenIdsIn: false,
        tokenIdsOut: false,
        logprobs: true,
        abortById: false,
        // A probe cannot find out whether a server aborts on disconnect; all tested servers do.
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

  /** Plain OpenAI servers have no common route for load, start and weights. */
  async report(): Promise<EngineReport> {
    return { models: await this.listedModels() };
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

  override async generate(request: GenerationRequest, options?: GenerateOptions): Promise<GenerationResult> {
    try {
      return await super.generate(request, options);
    } catch (error) {
      const wantsOtherName = isBroomwagonError(error, 'ENGINE_REJECTED') && /max_completion_tokens/.test(error.message);
      if (!wantsOtherName || this.chatBudget === 'max_completion_tokens') throw error;
      this.chatBudget = 'max_completion_tokens';
      return super.generate(request, options);
    }
  }

  protected async route(request: GenerationRequest, plan: RunPlan): Promise<RouteCall> {
    const { prompt } = plan;
    if ('tokenIds' in prompt) {
      throw new BroomwagonError('ENGINE_REJECTED', 'An OpenAI-compatible engine does not accept token ids', {
        field: 'prompt.promptTokenIds',
      });
    }
    const body = {
      ...wireSampling('openai', request.sampling, plan.minTokens),
      ...(await this.intervals.field(request)),
      model: await this.model(),
      stream_options: { include_usage: true },
    };
    if ('text' in prompt) {
      return this.completionRoute(prompt.text, { ...body, max_tokens: plan.budget }, request.sampling);
    }
    const budget = { [this.chatBudget]: plan.budget };
    return this.chatRoute(prompt.messages, prompt.continued, { ...body, ...budget }, request.sampling);
  }
}
