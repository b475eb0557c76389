import { Injectable } from '@nestjs/common';
import { invalidField, type ServerStatus } from '@broomwagon/contracts';
import { ControlPlane } from '@broomwagon/generation';
import type { Exchange, Routes } from '../http/route';
import { sendJson } from '../http/send-json';
import { poolServers } from './pool-servers';
import { WorkerRegistry } from './worker-registry';

/** Path of the OpenAI routes of an engine, which rllm sends with each worker. */
const API_PATH = '/v1';

/** The list of engines as the client of rllm reads and changes it, with addresses. */
@Injectable()
export class RllmWorkers {
  readonly routes: Routes = {
    'GET /admin/workers': { role: 'trainer', answer: (exchange) => this.list(exchange) },
    'POST /admin/workers': { role: 'trainer', answer: (exchange) => this.add(exchange) },
    'DELETE /admin/workers/{id}': {
      idMayHaveSlashes: true,
      role: 'trainer',
      answer: (exchange) => this.remove(exchange),
    },
    'GET /health/workers': { role: 'trainer', answer: (exchange) => this.health(exchange) },
  };

  constructor(
    private readonly registry: WorkerRegistry,
    private readonly controlPlane: ControlPlane,
  ) {}

  private async list({ response }: Exchange): Promise<void> {
    sendJson(response, 200, (await poolServers(this.controlPlane)).map(toWorker));
  }

  private async health({ response }: Exchange): Promise<void> {
    const workers = (await poolServers(this.controlPlane)).map(toWorker);
    const healthy = workers.filter((worker) => worker.healthy).length;
    sendJson(response, 200, { workers, healthy, total: workers.length });
  }

  private async add({ body, response }: Exchange): Promise<void> {
    const { url, api_path: path, weight = 1, worker_id: id, model_name: model } = body;
    if (path !== undefined && path !== API_PATH) throw invalidField('api_path', `must be ${API_PATH}`);
    if (weight !== 1) throw invalidField('weight', 'must be 1: the load-balancer places requests by load');
    if (id !== undefined) throw invalidField('worker_id', 'is made of the URL');
    if (model !== undefined) throw invalidField('model_name', 'is read from the engine');
    const { serverId, endpoint } = await this.registry.register(url);
    sendJson(response, 200, { worker_id: serverId, url: endpoint, api_path: API_PATH });
  }

  private async remove({ pathId, response }: Exchange): Promise<void> {
    sendJson(response, 200, { removed: await this.registry.remove(pathId ?? '') });
  }
}

function toWorker({ serverId, endpoint, model, state, inflight }: ServerStatus) {
  const healthy = state === 'ready';
  const worker = { worker_id: serverId, url: endpoint, api_path: API_PATH, model_name: model ?? null };
  return { ...worker, weight: 1, healthy, active_requests: inflight };
}
