import { readFile } from 'node:fs/promises';
import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { join } from 'node:path';
import { BroomwagonError, cutText } from '@broomwagon/contracts';
import { callSignal } from '@broomwagon/engines';

const TIMEOUT_MS = 10_000;
/** Bytes of one answer; a page of 500 EndpointSlices is far below. */
const MOST_BYTES = 64 * 1_024 * 1_024;

/** Where the API server is and who asks. */
export interface KubernetesAccess {
  /** Base URL, e.g. `https://10.96.0.1:443`. */
  url: string;
  /** Folder with `token`, `ca.crt` and `namespace`. Read again for each call, because tokens are rotated. */
  serviceAccountDir: string;
}

/** GETs JSON of the API server of Kubernetes as the service account of this pod. */
export class KubernetesApi {
  constructor(private readonly access: KubernetesAccess) {}

  /** The namespace of this pod. @throws BroomwagonError UNAVAILABLE when there is no service account */
  namespace(): Promise<string> {
    return this.secret('namespace');
  }

  /** @throws BroomwagonError UNAVAILABLE: no answer in 10 s, a status other than 200, or no JSON */
  async get(path: string, signal: AbortSignal): Promise<unknown> {
    const url = new URL(path, this.access.url);
    const token = await this.secret('token');
    const ca = url.protocol === 'https:' ? await this.secret('ca.crt') : undefined;
    const call = callSignal(TIMEOUT_MS, signal);
    const { status, body } = await this.ask(url, token, ca, call.signal).finally(() => call.clear());
    if (status !== 200) throw unavailable(`answered ${status} to ${url.pathname}: ${cutText(body, 300)}`);
    try {
      return JSON.parse(body) as unknown;
    } catch (cause) {
      throw unavailable(`did not answer JSON to ${url.pathname}`, cause);
    }
  }

  private ask(url: URL, token: string, ca: string | undefined, signal: AbortSignal) {
    return new Promise<{ status: number; body: string }>((resolve, reject) => {
      const fail = (cause: Error) => reject(unavailable(`does not answer: ${cause.message}`, cause));
      const open = url.protocol === 'https:' ? requestHttps : requestHttp;
      const headers = { authorization: `Bearer ${token}`, accept: 'application/json' };
      const call = open(url, { headers, ca, signal }, (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > MOST_BYTES) response.destroy(new Error('the answer is too long'));
          else chunks.push(chunk);
        });
        response.on('error', fail);
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, body: Buffer.concat(chunks).toString('utf8') }),
        );
      });
      call.on('error', fail);
      call.end();
    });
  }

  private async secret(name: 'token' | 'ca.crt' | 'namespace'): Promise<string> {
    try {
      return (await readFile(join(this.access.serviceAccountDir, name), 'utf8')).trim();
    } catch (cause) {
      throw unavailable(`: the service account has no ${name}`, cause);
    }
  }
}

function unavailable(what: string, cause?: unknown): BroomwagonError {
  return new BroomwagonError('UNAVAILABLE', `The API server of Kubernetes ${what}`, { cause });
}
