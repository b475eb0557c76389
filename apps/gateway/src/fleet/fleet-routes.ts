import { Injectable } from '@nestjs/common';
import { invalidField, type Labels, type ServerState } from '@broomwagon/contracts';
import { ControlPlane } from '@broomwagon/generation';
import { GatewayConfig } from '../gateway.config';
import type { Exchange, Routes } from '../http/route';
import { sendJson } from '../http/send-json';
import { poolServers } from './pool-servers';
import { toBaseUrl, WorkerRegistry } from './worker-registry';

/** Statuses of the router of SGLang; all other states are `not_ready`. */
const STATUSES: Partial<Record<ServerState, string>> = {
  pending: 'pending',
  ready: 'ready',
  failed: 'failed',
  draining: 'draining',
};

/** Fields with one value for all workers. */
const REGULAR = { worker_type: 'regular', connection_mode: 'http', priority: 50, cost: 1 };

interface Worker {
  id: string;
  url: string;
  runtime_type: string;
  model_id?: string;
  labels: Labels;
  is_healthy: boolean;
  status: string;
  load: number;
}

/**
 * Routes by which trainers add engines to a router, and read its list of engines. Changes need the role trainer,
 * because requests are sent to each added address.
 */
@Injectable()
export class FleetRoutes {
  readonly routes: Routes = {
    'GET /workers': { answer: (exchange) => this.list(exchange) },
    'POST /workers': { role: 'trainer', answer: (exchange) => this.create(exchange) },
    'DELETE /workers/{id}': { idMayHaveSlashes: true, role: 'trainer', answer: (exchange) => this.delete(exchange) },
    'GET /list_workers': { answer: (exchange) => this.listUrls(exchange) },
    'POST /add_worker': { role: 'trainer', answer: (exchange) => this.add(exchange) },
    'POST /remove_worker': { role: 'trainer', answer: (exchange) => this.removeByUrl(exchange) },
  };

  constructor(
    private readonly registry: WorkerRegistry,
    private readonly controlPlane: ControlPlane,
    private readonly config: GatewayConfig,
  ) {}

  private async list(exchange: Exchange): Promise<void> {
    const workers = await this.workers(exchange);
    const models = new Set(workers.map((worker) => worker.model_id));
    const stats = {
      total_workers: workers.length,
      healthy_workers: workers.filter((worker) => worker.is_healthy).length,
      total_models: models.size,
      total_load: workers.reduce((sum, { load }) => sum + load, 0),
      by_type: { regular: workers.length, prefill: 0, decode: 0 },
    };
    const described = workers.map((worker) => ({ ...REGULAR, ...worker }));
    sendJson(exchange.response, 200, { workers: described, total: workers.length, stats });
  }

  private async listUrls(exchange: Exchange): Promise<void> {
    const workers = await this.workers(exchange);
    sendJson(exchange.response, 200, { urls: workers.map(({ url }) => url) });
  }

  private async create(exchange: Exchange): Promise<void> {
    const { serverId, url } = await this.register(exchange);
    const location = `/workers/${encodeURIComponent(serverId)}`;
    sendJson(exchange.response, 202, { status: 'accepted', worker_id: serverId, url, location });
  }

  private async add(exchange: Exchange): Promise<void> {
    await this.register(exchange);
    const workers = (await poolServers(this.controlPlane)).map(({ endpoint, inflight }) => [endpoint, inflight]);
    sendJson(exchange.response, 200, { status: 'success', worker_urls: Object.fromEntries(workers) });
  }

  /** @param exchange request with the id of a worker, or the URL of the worker, in its path */
  private async delete(exchange: Exchange): Promise<void> {
    const id = await this.registry.remove(exchange.pathId ?? '');
    sendJson(exchange.response, 202, { status: 'accepted', worker_id: id });
  }

  private async removeByUrl(exchange: Exchange): Promise<void> {
    await this.registry.remove(parseEngineUrl(exchange));
    sendJson(exchange.response, 200, { status: 'success' });
  }

  private async register(exchange: Exchange): Promise<{ serverId: string; url: string }> {
    const url = parseEngineUrl(exchange);
    const { worker_type: type } = exchange.body;
    if (type !== undefined && type !== null && type !== 'regular') throw invalidField('worker_type', 'must be regular');
    const { serverId, endpoint } = await this.registry.register(url);
    return { serverId, url: endpoint };
  }

  private async workers(exchange: Exchange): Promise<Worker[]> {
    if (this.config.listedWorkers === 'engines') {
      return (await poolServers(this.controlPlane)).map((server) => ({
        id: server.serverId,
        url: server.endpoint,
        runtime_type: server.dialect,
        model_id: server.model,
        labels: server.labels ?? {},
        is_healthy: server.state === 'ready',
        status: STATUSES[server.state] ?? 'not_ready',
        load: server.inflight,
      }));
    }
    const { leases, readyServers } = await this.controlPlane.call('lb.status', {});
    const isHealthy = readyServers > 0;
    return [
      {
        id: this.config.workerId,
        url:
          this.config.publicUrl ?? `${this.config.httpTlsCert ? 'https' : 'http'}://${exchange.request.headers.host}`,
        runtime_type: 'sglang',
        labels: {},
        is_healthy: isHealthy,
        status: isHealthy ? 'ready' : 'not_ready',
        load: leases,
      },
    ];
  }
}

/** `url` of the query or the body, normalized. @throws BroomwagonError VALIDATION_FAILED */
function parseEngineUrl({ request, body }: Exchange): string {
  const [, query = ''] = (request.url ?? '').split('?', 2);
  return toBaseUrl(new URLSearchParams(query).get('url') ?? body.url);
}
