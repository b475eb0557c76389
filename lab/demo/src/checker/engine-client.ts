const FAMILIES = [
  ['/version', 'version', 'vllm'],
  ['/get_server_info', 'model_path', 'sglang'],
  ['/server_info', 'model_path', 'sglang'],
] as const;

/** The engine refuses this one call, for example for its length; other calls may be answered. */
export class CallRefused extends Error {
  override readonly name = 'CallRefused';
}

/** HTTP calls of the checker at an engine. */
export class EngineClient {
  private readonly base: string;
  private readonly headers: Record<string, string>;
  private model?: Promise<string>;

  /**
   * @param url base URL of the engine, with or without `/v1`
   * @param apiKey sent as a bearer token
   */
  constructor(url: string, apiKey?: string) {
    this.base = url.replace(/\/+$/, '').replace(/\/v1$/, '');
    this.headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` };
  }

  /** First model that the engine lists. */
  async readModel(): Promise<string> {
    this.model ??= this.get('/v1/models').then((answer) => {
      const id = (answer as { data?: { id?: string }[] } | undefined)?.data?.[0]?.id;
      if (id === undefined) throw new Error(`${this.base}/v1/models names no model`);
      return id;
    });
    return this.model;
  }

  /** Rejects for an engine that is neither vLLM nor SGLang. */
  async readFamily(): Promise<'vllm' | 'sglang'> {
    for (const [path, field, family] of FAMILIES) {
      const about = await this.get(path);
      if (typeof about?.[field] === 'string') return family;
    }
    throw new Error(`${this.base} is neither vLLM nor SGLang`);
  }

  /** @throws CallRefused for a body that the engine does not take; Error for another failure */
  async post<Answer>(path: string, body: object): Promise<Answer> {
    const answer = await fetch(`${this.base}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...this.headers },
      body: JSON.stringify(body),
    });
    if (answer.ok) return (await answer.json()) as Answer;
    const text = `${this.base}${path} answered ${answer.status}: ${await answer.text()}`;
    throw [400, 413, 422].includes(answer.status) ? new CallRefused(text) : new Error(text);
  }

  /** JSON object of an answer; undefined for a route that the engine does not have. */
  private async get(path: string): Promise<Record<string, unknown> | undefined> {
    const answer = await fetch(`${this.base}${path}`, { headers: this.headers });
    const text = await answer.text();
    if (answer.status === 404 || answer.status === 405) return undefined;
    if (!answer.ok) throw new Error(`${this.base}${path} answered ${answer.status}: ${text}`);
    return JSON.parse(text) as Record<string, unknown>;
  }
}
