import { Injectable } from '@nestjs/common';
import { BroomwagonError, type ServerStatus } from '@broomwagon/contracts';
import { NO_ROUTE } from '@broomwagon/engines';
import { ControlPlane, EngineAdapters } from '@broomwagon/generation';
import { poolServers } from '../../fleet/pool-servers';
import type { Exchange, Route, Routes } from '../../http/route';

/** Maximum time in which engines are asked, one after the other, milliseconds. */
const TIMEOUT_MS = 30_000;
/** Minimum time for a further engine, milliseconds. */
const MIN_TIMEOUT_MS = 500;
/**
 * Statuses of an engine that refuses the key of the gateway, or has disabled the route: clients would take them for a
 * refusal of their own key.
 */
const REFUSED: Record<number, string> = { 401: 'refused the key of the gateway', 403: 'refused the call' };

/** Paths of the gateway, with the paths of the engine. */
const PATHS = {
  '/tokenize': '/tokenize',
  '/v1/tokenize': '/tokenize',
  '/detokenize': '/detokenize',
  '/v1/detokenize': '/detokenize',
  '/v1/chat/completions/render': '/v1/chat/completions/render',
  '/v1/completions/render': '/v1/completions/render',
};

/** Converts texts, chats and token ids to each other, by a ready engine of the pool. */
@Injectable()
export class TokenizerRoutes {
  readonly routes: Routes = Object.fromEntries(
    Object.entries(PATHS).map(([path, ofEngine]): [string, Route] => [
      `POST ${path}`,
      { answer: (exchange) => this.pass(exchange, ofEngine) },
    ]),
  );

  constructor(
    private readonly controlPlane: ControlPlane,
    private readonly engines: EngineAdapters,
  ) {}

  private async pass({ response, body, bytes }: Exchange, path: string): Promise<void> {
    const { status, text } = await this.ask(path, bytes, body.model);
    if (response.destroyed) return;
    response.writeHead(status, { 'content-type': 'application/json' }).end(text);
  }

  /**
   * The answer of the first engine that has the route; engines with the model are preferred. An engine that does not
   * answer leaves half of the time to the next engines.
   * @throws BroomwagonError NO_SERVER_AVAILABLE, NO_CAPABLE_SERVER, ENGINE_UNREACHABLE, ENGINE_ERROR
   */
  async ask(path: string, body: Buffer, model?: unknown): Promise<{ status: number; text: string }> {
    const ready = (await poolServers(this.controlPlane)).filter(({ state }) => state === 'ready');
    if (ready.length === 0) throw new BroomwagonError('NO_SERVER_AVAILABLE', 'The pool has no ready server');
    const capable = ready.filter(({ capabilities }) => capabilities?.tokenize !== false);
    const ofModel = capable.filter((server) => server.model === model || server.models?.includes(String(model)));
    let failure: unknown = new BroomwagonError('NO_CAPABLE_SERVER', `No engine of the pool has ${path}`);
    let leftMs = TIMEOUT_MS;
    for (const server of inRandomOrder(ofModel.length > 0 ? ofModel : capable)) {
      if (leftMs < MIN_TIMEOUT_MS) break;
      const startedAt = performance.now();
      try {
        const answer = await this.engines.of(server).forward({ method: 'POST', path, body, timeoutMs: leftMs / 2 });
        const refused = REFUSED[answer.status];
        if (refused !== undefined) {
          throw new BroomwagonError('ENGINE_ERROR', `An engine ${refused} (${answer.status})`);
        }
        if (!NO_ROUTE.has(answer.status)) return answer;
      } catch (error) {
        failure = error;
      }
      leftMs -= performance.now() - startedAt;
    }
    throw failure;
  }
}

/** Starts at a random server, so that engines share the work; each engine is asked once at most. */
function inRandomOrder(servers: ServerStatus[]): ServerStatus[] {
  const from = Math.floor(Math.random() * servers.length);
  return [...servers.slice(from), ...servers.slice(0, from)];
}
