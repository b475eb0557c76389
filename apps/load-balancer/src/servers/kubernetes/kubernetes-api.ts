import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Agent, request, type Dispatcher } from 'undici';
import { BroomwagonError, cutText } from '@broomwagon/contracts';
import { callSignal } from '@broomwagon/engines';

const TIMEOUT_MS = 10_000;
/** Maximum bytes of one answer: far more than a page of 500 EndpointSlices. A watch of this size is started again. */
const MAX_BYTES = 64 * 1_024 * 1_024;

/** Address of the API server, and the service account of the calls. */
export interface KubernetesAccess {
  /** Base URL, e.g. `https://10.96.0.1:443`. */
  url: string;
  /** Folder with the files `token`, `ca.crt` and `namespace`. Each call reads them again, because tokens change. */
  serviceAccountDir: string;
  /**
   * Silence after which a watch counts as broken.
   * @default 120000, since an API server sends a bookmark about once a minute
   */
  watchSilenceMs?: number;
}

/** Reads JSON from the API server of Kubernetes, as the service account of this pod. */
export class KubernetesApi {
  private agent?: { ca: string | undefined; dispatcher: Agent };

  constructor(private readonly access: KubernetesAccess) {}

  /** Name with the address, for logs. */
  get name(): string {
    return `the API server of Kubernetes at ${this.access.url}`;
  }

  /** The namespace of this pod. @throws BroomwagonError UNAVAILABLE when there is no service account */
  namespace(): Promise<string> {
    return this.secret('namespace');
  }

  /** @throws BroomwagonError UNAVAILABLE: no answer in 10 s, a status other than 200, or no JSON */
  async get(path: string, signal: AbortSignal): Promise<unknown> {
    const call = callSignal(TIMEOUT_MS, signal);
    try {
      const body = await this.open(path, call.signal, TIMEOUT_MS);
      return parsed(await body.text().catch(fail), path);
    } finally {
      call.clear();
    }
  }

  /**
   * The events of a watch, until the API server ends the watch.
   * @throws BroomwagonError UNAVAILABLE as `get`; the iteration throws UNAVAILABLE when the connection breaks or is
   *   silent for too long
   */
  async watch(path: string, signal: AbortSignal): Promise<AsyncIterable<unknown>> {
    return readLines(await this.open(path, signal, this.access.watchSilenceMs ?? 120_000), path);
  }

  private async open(path: string, signal: AbortSignal, bodyTimeout: number): Promise<Dispatcher.ResponseData['body']> {
    const url = new URL(path, this.access.url);
    const headers = { authorization: `Bearer ${await this.secret('token')}`, accept: 'application/json' };
    const dispatcher = this.dispatcherFor(url.protocol === 'https:' ? await this.secret('ca.crt') : undefined);
    const options = { dispatcher, headers, signal, headersTimeout: TIMEOUT_MS, bodyTimeout };
    const { statusCode, body } = await request(url, options).catch(fail);
    if (statusCode === 200) return body;
    const refusal = await body.text().catch(fail);
    throw unavailable(`answered ${statusCode} to ${url.pathname}: ${cutText(refusal, 300)}`);
  }

  private dispatcherFor(ca: string | undefined): Agent {
    if (this.agent === undefined || this.agent.ca !== ca) {
      const connect = { ca, timeout: TIMEOUT_MS };
      this.agent = { ca, dispatcher: new Agent({ connect, maxResponseSize: MAX_BYTES }) };
    }
    return this.agent.dispatcher;
  }

  private async secret(name: 'token' | 'ca.crt' | 'namespace'): Promise<string> {
    try {
      return (await readFile(join(this.access.serviceAccountDir, name), 'utf8')).trim();
    } catch (cause) {
      throw unavailable(`: the service account has no ${name}`, cause);
    }
  }
}

/** Parses each line as JSON. */
async function* readLines(body: Dispatcher.ResponseData['body'], path: string): AsyncGenerator<unknown> {
  let rest = '';
  try {
    for await (const chunk of body.setEncoding('utf8')) {
      const lines = (rest + (chunk as string)).split('\n');
      rest = lines.pop()!;
      for (const line of lines) yield parsed(line, path);
    }
  } catch (error) {
    fail(error);
  }
}

function parsed(text: string, path: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw unavailable(`did not answer JSON to ${path.replace(/\?.*/, '')}`, cause);
  }
}

function fail(cause: unknown): never {
  if (cause instanceof BroomwagonError) throw cause;
  throw unavailable(`does not answer: ${cause instanceof Error ? cause.message : String(cause)}`, cause);
}

function unavailable(what: string, cause?: unknown): BroomwagonError {
  return new BroomwagonError('UNAVAILABLE', `The API server of Kubernetes ${what}`, { cause });
}
