import type { GenerationRequest } from '../engine-adapter';
import { parseObject, type EngineHttp } from '../http/engine-http';
import type { IncludedStop } from '../stream/included-stop';

/** Time for which a call that was cut waits until the engine has decoded ids, milliseconds. */
const DECODE_MS = 2_000;

/** Texts of the stop token ids of requests, as the engine decodes them. */
export class StopTokens {
  private readonly texts = new Map<number, string>();

  constructor(
    private readonly http: EngineHttp,
    private readonly model: () => Promise<string>,
  ) {}

  /**
   * Stop texts of a response whose engine is asked to send the stop text.
   * @returns undefined if the engine is not asked: without stop texts, if tool calls would be parsed with the stop
   *   text, or if texts of stop token ids are unknown
   */
  async includedStop({ prompt, sampling }: GenerationRequest): Promise<IncludedStop | undefined> {
    const { tools, skip_special_tokens: skips, sampling_params: given } = prompt.engineFields ?? {};
    const stops = sampling?.stop ?? [];
    if (stops.length === 0 || tools !== undefined) return undefined;
    const tokenTexts = new Map<number, string>();
    for (const id of sampling?.stopTokenIds ?? []) {
      const text = this.texts.get(id) ?? (await this.decode([id]).catch(() => undefined));
      if (text === undefined) return undefined;
      this.texts.set(id, text);
      tokenTexts.set(id, text);
    }
    const { skip_special_tokens: skipsByParameter = skips } = (given ?? {}) as { skip_special_tokens?: unknown };
    return { stops, tokenTexts, hasSpecialTokens: skipsByParameter === false };
  }

  /**
   * The text of ids, which vLLM names `prompt` and SGLang `text`; undefined: the engine does not decode.
   * @throws Error if the engine does not answer, or is too busy to
   */
  async decode(tokens: number[], timeoutMs = DECODE_MS): Promise<string | undefined> {
    const model = await this.model();
    const { status, text: body } = await this.http.call('POST', '/detokenize', { model, tokens }, undefined, timeoutMs);
    if (status === 429 || status >= 500) throw new Error(`${status}: the engine cannot decode now`);
    const { prompt, text } = (status === 200 && parseObject(body)) || {};
    return [prompt, text].find((one): one is string => typeof one === 'string');
  }
}
