import type { GenerationRequest } from '../engine-adapter';
import { parseObject, type EngineHttp } from '../http/engine-http';
import type { IncludedStop } from '../stream/included-stop';

/** Texts of the stop token ids of requests, as the engine decodes them. */
export class StopTokens {
  private readonly texts = new Map<number, string>();

  constructor(
    private readonly http: EngineHttp,
    private readonly model: () => Promise<string>,
  ) {}

  /**
   * How the response ends if the engine is asked to send its stop text. Undefined: the engine is not asked, since there
   * is no stop text, calls of tools would be parsed with it, or the texts of stop token ids are unknown.
   */
  async includedStop({ prompt, sampling }: GenerationRequest): Promise<IncludedStop | undefined> {
    const { tools, skip_special_tokens: skips, sampling_params: given } = prompt.engineFields ?? {};
    const stops = sampling?.stop ?? [];
    if (stops.length === 0 || tools !== undefined) return undefined;
    const tokenTexts = new Map<number, string>();
    for (const id of sampling?.stopTokenIds ?? []) {
      const text = this.texts.get(id) ?? (await this.detokenize(id));
      if (text === undefined) return undefined;
      this.texts.set(id, text);
      tokenTexts.set(id, text);
    }
    const { skip_special_tokens: skipsByParameter = skips } = (given ?? {}) as { skip_special_tokens?: unknown };
    return { stops, tokenTexts, hasSpecialTokens: skipsByParameter === false };
  }

  /** vLLM names the text `prompt`, SGLang `text`. */
  private async detokenize(id: number): Promise<string | undefined> {
    const body = { model: await this.model(), tokens: [id] };
    const answer = await this.http.call('POST', '/detokenize', body).catch(() => undefined);
    const { prompt, text } = (answer?.status === 200 && parseObject(answer.text)) || {};
    return [prompt, text].find((one): one is string => typeof one === 'string');
  }
}
