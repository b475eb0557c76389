import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { EngineDialect } from '@broomwagon/contracts';
import { type Fault, FAULT_KINDS, type FaultKind } from '../engine/faults';
import type { SimulatedEngine } from '../engine/simulated-engine';
import type { SampleIdentities } from '../tokens/sample-identity';
import { AnswerFormat } from './answer-format';
import { sendStreamError, StreamSink, WholeSink } from './answer-sink';
import { expertsOf, type ExpertsOption } from './expert-rows';
import { errorBody, RefusedError, sendBody, sendJson } from './answers';
import { readOpenAiCall, readSglangCall, readTokenCall, type GenerateCall } from './generate-call';
import { sglangControls, vllmControls } from './control-routes';
import { derenderRoute } from './derender-route';
import { metricsPage } from './metrics-page';
import { readObject, wholeNumber } from './request-body';
import type { Route } from './route';
import { sglangWeights, vllmWeights } from './weight-routes';

export interface EngineServerOptions {
  engine: SimulatedEngine;
  identities: SampleIdentities;
  dialect: EngineDialect;
  model: string;
  /** SGLang: chunks repeat everything made so far (its default) or not. */
  cumulative: boolean;
  /** vLLM with `--enable-scale-out`. */
  scaleOut?: boolean;
  /** Tokens at the start of each message of a chat that are its reasoning; default 0. */
  reasoningTokens?: number;
  experts?: ExpertsOption;
}

const VERSION = '0.11.0';

/** One HTTP server in front of one simulated engine, answering in one dialect. */
export class EngineServer {
  private readonly server: Server;
  private readonly routes: Record<string, Route>;
  /** Requests with the fault `late`. */
  private readonly late: (() => void)[] = [];

  constructor(private readonly options: EngineServerOptions) {
    this.routes = { ...this.dialectRoutes(), ...this.simulatorRoutes() };
    this.server = createServer((request, response) => void this.answer(request, response));
    // Generations last as long as they last, and idle connections of clients are theirs to close.
    this.server.requestTimeout = 0;
    this.server.keepAliveTimeout = 60_000;
  }

  /** Listens; port 0 takes a free one. Resolves to the port. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(port, host, 8_192, () => resolve((this.server.address() as AddressInfo).port));
    });
  }

  /** Stops listening and breaks off every stream. */
  close(): Promise<void> {
    return new Promise((resolve) => {
      this.server.close(() => resolve());
      this.server.closeAllConnections();
    });
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://engine');
    const route = this.routes[`${request.method} ${url.pathname}`];
    try {
      if (route) return await route(request, response, url.searchParams);
      request.resume();
      const otherMethod = Object.keys(this.routes).some((key) => key.endsWith(` ${url.pathname}`));
      sendJson(response, otherMethod ? 405 : 404, { detail: otherMethod ? 'Method Not Allowed' : 'Not Found' });
    } catch (error) {
      request.resume();
      const status = error instanceof RefusedError ? error.status : error instanceof RangeError ? 400 : 500;
      sendJson(response, status, errorBody(status, error instanceof Error ? error.message : String(error)));
    }
  }

  private dialectRoutes(): Record<string, Route> {
    const { engine, identities, model, dialect, scaleOut, reasoningTokens = 0 } = this.options;
    const health: Route = (_, response) => sendBody(response, engine.faults.unhealthy ? 503 : 200, 'text/plain', '');
    const openAi: Record<string, Route> = {
      'GET /v1/models': (_, response) => sendJson(response, 200, this.modelList()),
      'POST /v1/completions': (request, response) => this.openAi(request, response, 'completion'),
      'POST /v1/chat/completions': (request, response) => this.openAi(request, response, 'chat'),
    };
    const metrics: Route = (_, response) => sendBody(response, 200, 'text/plain', metricsPage(engine, dialect, model));
    const info: Route = (_, response) => sendJson(response, 200, this.sglangInfo());
    const loads: Route = (_, response) => sendJson(response, 200, { loads: [this.sglangLoad()] });
    const routes: Record<EngineDialect, Record<string, Route>> = {
      vllm: {
        ...openAi,
        'GET /health': health,
        'GET /metrics': metrics,
        'GET /version': (_, response) => sendJson(response, 200, { version: VERSION, instance_id: engine.instanceId }),
        'POST /abort_requests': (request, response) => this.abortRequests(request, response),
        ...(scaleOut && {
          'POST /inference/v1/generate': async (request, response) =>
            this.generate(readTokenCall(request, await readObject(request)), response),
        }),
        ...vllmControls(engine, identities),
        ...(scaleOut && { 'POST /v1/chat/completions/derender': derenderRoute(identities, reasoningTokens) }),
        ...vllmWeights(engine),
      },
      sglang: {
        ...openAi,
        'GET /health': health,
        'GET /metrics': metrics,
        'GET /get_server_info': info,
        'GET /server_info': info,
        'GET /v1/loads': loads,
        'GET /get_load': (_, response) => sendJson(response, 200, [this.sglangLoad()]),
        'POST /generate': async (request, response) =>
          this.generate(readSglangCall(request, await readObject(request)), response),
        'POST /abort_request': (request, response) => this.abortByPrefix(request, response),
        ...sglangControls(engine, identities),
        ...sglangWeights(engine),
      },
      openai: openAi,
    };
    return routes[dialect];
  }

  private simulatorRoutes(): Record<string, Route> {
    const { engine, identities, dialect, model } = this.options;
    const { serverId, speed } = engine.options;
    return {
      'GET /simulator/state': (_, response) =>
        sendJson(response, 200, {
          serverId,
          instanceId: engine.instanceId,
          dialect,
          model,
          speed,
          ...engine.load,
          resumeMismatches: identities.resumeMismatches,
          table: engine.table,
          controls: engine.controls,
          late: this.late.length,
        }),
      'POST /simulator/reset': async (request, response) => {
        await readObject(request);
        engine.reset();
        identities.reset();
        sendJson(response, 200, { reset: true });
      },
      'POST /simulator/fault': async (request, response) => {
        const body = await readObject(request);
        if (!FAULT_KINDS.includes(body.kind as FaultKind)) {
          throw new RefusedError(400, `kind must be one of ${FAULT_KINDS.join(', ')}`);
        }
        engine.faults.add({
          kind: body.kind as FaultKind,
          count: wholeNumber(body, 'count', 1) ?? 1,
          afterTokens: wholeNumber(body, 'afterTokens', 0) ?? 1,
        });
        sendJson(response, 200, { accepted: true });
      },
    };
  }

  private async openAi(request: IncomingMessage, response: ServerResponse, form: 'completion' | 'chat'): Promise<void> {
    const body = await readObject(request);
    this.generate(readOpenAiCall(request, body, form, this.options.dialect !== 'openai'), response);
  }

  private generate(call: GenerateCall, response: ServerResponse): void {
    const fault = this.options.engine.faults.take();
    if (fault?.kind === 'late') this.late.push(() => this.run(call, response, undefined, false));
    else if (!fault || !this.refuse(fault.kind, response)) this.run(call, response, fault);
  }

  private run(
    call: GenerateCall,
    response: ServerResponse,
    fault: Fault | undefined,
    noticesClose = fault?.kind !== 'stall-unnoticed',
  ): void {
    const { engine, identities, model, cumulative, reasoningTokens = 0, experts } = this.options;
    const identity = identities.identify(call.prompt, call.seed);
    const promptTokens = identity.promptTokens + identity.madeTokens;
    const start = identity.madeTokens;
    const createdAtSeconds = Math.floor(Date.now() / 1e3);
    const format = new AnswerFormat({
      call,
      script: identity.script,
      model,
      createdAtSeconds,
      promptTokenIds: call.form === 'chat' && call.tokenIds ? identities.tokenize(call.prompt) : undefined,
      promptTokens,
      start,
      cumulative,
      reasoningTokens,
      experts: experts && expertsOf(call, experts, identity.promptTokens),
    });
    const names = [call.id, nameOf(call)];
    const budget = call.maxTokens ?? Math.max(1, engine.maxModelTokens - promptTokens);
    let sink: StreamSink | WholeSink | undefined;
    let drop: () => void;
    try {
      drop = engine.submit(
        { names, identity, budget, minTokens: call.minTokens },
        {
          tokens: (from, to) => sink?.tokens(from, to),
          // A response with nothing left to make ends before submit returns, hence before there is a sink.
          end: (reason) => (sink ? sink.end(reason) : setImmediate(() => sink?.end(reason))),
        },
      );
    } catch (error) {
      if (call.form !== 'sglang' || !call.stream) throw error;
      sendStreamError(response, (error as Error).message);
      return;
    }
    sink = call.stream ? new StreamSink(response, format, start, fault) : new WholeSink(response, format, start);
    if (noticesClose) response.on('close', drop);
  }

  /** Faults that need no engine. True when it has struck. */
  private refuse(kind: FaultKind, response: ServerResponse): boolean {
    const status = /^error-(\d{3})$/.exec(kind)?.[1];
    if (status !== undefined) sendJson(response, Number(status), errorBody(Number(status), 'simulated refusal'));
    else if (kind === 'html') sendBody(response, 200, 'text/html', '<html><body><h1>It works!</h1></body></html>');
    else if (kind === 'close') response.destroy();
    else return kind === 'hang';
    return true;
  }

  private async abortRequests(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { request_ids: ids } = await readObject(request);
    if (!Array.isArray(ids)) throw new RefusedError(400, "Missing 'request_ids' in request body");
    this.refuseAbort();
    const wanted = new Set(ids as unknown[]);
    // As the real one: an empty list means all.
    this.options.engine.abort((name) => wanted.size === 0 || wanted.has(name));
    sendJson(response, 200, {});
    this.admitLate();
  }

  private refuseAbort(): void {
    if (this.options.engine.faults.takeAbort()) throw new RefusedError(500, 'simulated refusal');
  }

  private async abortByPrefix(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { rid, abort_all: all } = await readObject(request);
    this.refuseAbort();
    this.options.engine.abort((name) => all === true || (typeof rid === 'string' && name.startsWith(rid)));
    sendBody(response, 200, 'text/plain', '');
    this.admitLate();
  }

  private admitLate(): void {
    for (const run of this.late.splice(0)) run();
  }

  private modelList() {
    const { model, dialect, engine } = this.options;
    const card = { id: model, object: 'model', owned_by: dialect };
    const limit = dialect === 'openai' ? {} : { max_model_len: engine.maxModelTokens };
    return { object: 'list', data: [{ ...card, ...limit }] };
  }

  private sglangInfo() {
    const { model, engine, cumulative } = this.options;
    return {
      model_path: model,
      served_model_name: model,
      version: '0.5.6',
      context_length: engine.maxModelTokens,
      incremental_streaming_output: !cumulative,
      instance_id: engine.instanceId,
      tp_size: engine.options.ranks ?? 1,
      // As in SGLang by default: its chat route takes parameters from generation_config.json of the model.
      sampling_defaults: 'model',
      reasoning_parser: this.options.reasoningTokens ? 'simulated' : null,
      internal_states: [],
    };
  }

  private sglangLoad() {
    const { running, waiting, kvUse, kvTokens } = this.options.engine.load;
    return {
      dp_rank: 0,
      num_running_reqs: running,
      num_waiting_reqs: waiting,
      max_total_num_tokens: kvTokens,
      token_usage: kvUse,
    };
  }
}

/** The id of a request inside vLLM. */
function nameOf({ form, id }: GenerateCall): string {
  if (form === 'chat') return `chatcmpl-${id}`;
  return form === 'tokens' ? `generate-tokens-${id}` : `cmpl-${id}-0`;
}
