import { Injectable } from '@nestjs/common';
import { BroomwagonError, includesRole, invalidField, type ServerStatus } from '@broomwagon/contracts';
import { ControlPlane, WorkerSession } from '@broomwagon/generation';
import { VERSION } from '@broomwagon/platform';
import { GatewayConfig } from '../../gateway.config';
import { AbortBroadcast } from '../../core/abort-broadcast';
import type { Exchange, Route, Routes } from '../../http/route';
import { sendJson } from '../../http/send-json';

/** The routes of SGLang besides `/generate`: aborts, health, load, and information about the model. */
@Injectable()
export class SglangControl {
  readonly routes: Routes;

  constructor(
    private readonly controlPlane: ControlPlane,
    private readonly session: WorkerSession,
    private readonly aborts: AbortBroadcast,
    private readonly config: GatewayConfig,
  ) {
    const modelInfo: Route = { answer: (exchange) => this.modelInfo(exchange) };
    const serverInfo: Route = { answer: (exchange) => this.serverInfo(exchange) };
    const health: Route = { isPublic: true, answer: (exchange) => this.health(exchange) };
    const healthGenerate: Route = { isPublic: true, answer: (exchange) => this.healthGenerate(exchange) };
    this.routes = {
      'POST /abort_request': { answer: (exchange) => this.abort(exchange) },
      'GET /health': health,
      'GET /liveness': health,
      'GET /health_generate': healthGenerate,
      'GET /readiness': healthGenerate,
      'GET /v1/loads': { answer: (exchange) => this.loads(exchange) },
      'GET /get_model_info': modelInfo,
      'GET /model_info': modelInfo,
      'GET /get_server_info': serverInfo,
      'GET /server_info': serverInfo,
    };
  }

  /** Aborts requests. As in SGLang, the answer does not show whether the request exists. */
  private abort({ response, caller, body }: Exchange): void {
    const { rid, abort_all: all, prefix } = body;
    if (rid !== undefined && rid !== null && typeof rid !== 'string') throw invalidField('rid', 'must be a text');
    const tokenId = includesRole(caller.role, 'operator') ? undefined : caller.tokenId;
    if (all === true) this.aborts.abort({ all: true, tokenId });
    else if (rid) this.aborts.abort({ id: rid, isPrefix: prefix === true, tokenId });
    response.writeHead(200).end();
  }

  /** Whether this replica takes requests. */
  private health({ response }: Exchange): void {
    if (this.session.current() === undefined) throw new BroomwagonError('UNAVAILABLE', 'The gateway is not registered');
    // The client of rllm reads the status.
    sendJson(response, 200, { status: 'ok' });
  }

  /** Whether a server of the pool takes requests. */
  private async healthGenerate({ response }: Exchange): Promise<void> {
    const { readyServers } = await this.controlPlane.call('lb.status', {});
    if (readyServers === 0) throw new BroomwagonError('NO_SERVER_AVAILABLE', 'No server of the pool takes requests');
    response.writeHead(200).end();
  }

  /** Requests of the whole pool: requests with a server, and requests that wait for one. */
  private async loads({ response }: Exchange): Promise<void> {
    const { leases, waiters } = await this.controlPlane.call('lb.status', {});
    const load = { num_running_reqs: leases, num_waiting_reqs: waiters, num_total_reqs: leases + waiters };
    sendJson(response, 200, { loads: [{ dp_rank: 0, ...load }] });
  }

  private async modelInfo({ response }: Exchange): Promise<void> {
    const { model = '', weightVersion } = await this.server();
    const weights = { weight_version: String(weightVersion) };
    sendJson(response, 200, { model_path: model, tokenizer_path: model, is_generation: true, ...weights });
  }

  private async serverInfo({ response }: Exchange): Promise<void> {
    const { model = '', weightVersion, capabilities } = await this.server();
    sendJson(response, 200, {
      model_path: model,
      served_model_name: model,
      tokenizer_path: model,
      version: VERSION,
      instance_id: this.config.workerId,
      incremental_streaming_output: this.config.incrementalStreams,
      weight_version: String(weightVersion),
      ...(capabilities?.maxModelTokens !== undefined && { context_length: capabilities.maxModelTokens }),
      internal_states: [],
    });
  }

  /** Returns a server of the pool; a server that takes requests is preferred. */
  private async server(): Promise<ServerStatus> {
    const { servers } = await this.controlPlane.call('server.list', {});
    const server = servers.find(({ state }) => state === 'ready') ?? servers[0];
    if (server === undefined) throw new BroomwagonError('NO_SERVER_AVAILABLE', 'The pool has no server');
    return server;
  }
}
