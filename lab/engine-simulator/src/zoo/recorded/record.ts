import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { isBroomwagonError } from '@broomwagon/contracts';
import { createEngineAdapter, randomEngineRequestId } from '@broomwagon/engines';
import { decodeBy } from '../../../../demo/src/checker/decode-by-engine';
import { EngineClient } from '../../../../demo/src/checker/engine-client';
import type { Recording } from './recording';
import { detectEngine } from '../../../../../libs/engines/src/detect-engine';

/** Headers that belong to one connection and are not forwarded. */
const OWN_HEADERS = new Set(['host', 'connection', 'content-length', 'transfer-encoding']);

/**
 * Sends a request to an engine as Broomwagon does, through a proxy that records the stream.
 * @throws Error if the engine has answered without a stream
 */
export async function recordStream(
  url: string,
  {
    request,
    apiKey,
    ...row
  }: Pick<Recording, 'name' | 'behaviour' | 'release' | 'source' | 'request'> & { apiKey?: string },
): Promise<Recording> {
  const { adapter: detected, model, capabilities } = await detectEngine(url, { apiKey });
  const { dialect } = detected;
  const proxy = await startProxy(detected.url);
  let outcome: Recording['outcome'];
  let tokenIds: readonly number[] | undefined;
  try {
    const adapter = createEngineAdapter(dialect, proxy.url, { apiKey, model });
    const result = await adapter.generate({ ...request, engineRequestId: randomEngineRequestId() });
    outcome = result.finishReason;
    ({ tokenIds } = result);
  } catch (error) {
    if (!isBroomwagonError(error)) throw error;
    outcome = error.code;
  } finally {
    proxy.close();
  }
  const { stream: response } = proxy;
  if (response === undefined) throw new Error(`${url} has sent no stream: ${outcome}`);
  const decode = decodeBy(new EngineClient(url, apiKey));
  const canDecode = tokenIds !== undefined && capabilities.tokenize === true;
  const decoded = canDecode
    ? await Promise.all([[], ...tokenIds!].map((_, count) => (count === 0 ? '' : decode(tokenIds!.slice(0, count)))))
    : undefined;
  return { ...row, dialect, request, response, outcome, decoded };
}

interface Proxy {
  url: string;
  /** Newest stream of the engine. */
  stream?: Recording['response'];
  close: () => void;
}

async function startProxy(target: string): Promise<Proxy> {
  const server = createServer((incoming, outgoing) => {
    const forward = async (): Promise<void> => {
      const headers = Object.entries(incoming.headers).filter(([name]) => !OWN_HEADERS.has(name));
      const answer = await fetch(`${target}${incoming.url}`, {
        method: incoming.method,
        headers: Object.fromEntries(headers) as Record<string, string>,
        ...(incoming.method !== 'GET' && { body: await buffer(incoming) }),
      });
      const body = await answer.text();
      const contentType = answer.headers.get('content-type') ?? '';
      if (contentType.startsWith('text/event-stream')) proxy.stream = { status: answer.status, contentType, body };
      outgoing.writeHead(answer.status, { 'content-type': contentType }).end(body);
    };
    forward().catch((error: unknown) => outgoing.destroy(error as Error));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const close = (): void => {
    server.close();
    server.closeAllConnections();
  };
  const proxy: Proxy = { url: `http://127.0.0.1:${port}`, close };
  return proxy;
}
