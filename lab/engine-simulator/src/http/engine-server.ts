import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { EngineDialect } from '@broomwagon/contracts';
import type { Fault, FaultKind } from '../engine/faults';
import type { EngineLoad, SimulatedEngine } from '../engine/simulated-engine';
import type { TokenSink } from '../engine/simulated-engine.types';
import type { SampleIdentities } from '../tokens/sample-identity';
import { AnswerFormat } from './answer-format';
import { sendStreamError, StreamSink, WholeSink } from './answer-sink';
import { buildExperts, type ExpertsOption } from './expert-rows';
import { errorBody, RefusedError, sendBody, sendJson } from './answers';
import { type IntervalRule, readOpenAiCall, readSglangCall, readTokenCall, type GenerateCall } from './generate-call';
import { sglangControls, vllmControls } from './control-routes';
import { type Described, modelList, sglangInfo, sglangLoad } from './descriptions';
import { derenderRoute } from './derender-route';
import { metricsPage } from './metrics-page';
import { scorePrompt } from './prompt-logprobs';
import { readObject } from './request-body';
import type { Route } from './route';
import { simulatorRoutes } from './simulator-routes';
import { sglangWeights, vllmWeights } from './weight-routes';
import { ActiveZoo, type ZooSelection, type ZooTurn } from '../zoo/active-zoo';

export interface EngineServerOptions {
  engine: SimulatedEngine;
  identities: SampleIdentities;
  dialect: EngineDialect;
  model: string;
  /** SGLang: whether chunks repeat all tokens so far (the default of SGLang). */
  cumulative: boolean;
  /** Whether the routes of `--enable-scale-out` of vLLM are enabled; otherwise they answer 403, as in vLLM 0.32.0. */
  scaleOut?: boolean;
  /** Number of tokens at the start of each chat message that are its reasoning; default 0. */
  reasoningTokens?: number;
  experts?: ExpertsOption;
  /** Tokens of one event (`--stream-interval` of the engine); default 1: as many as there are. */
  streamInterval?: number;
  /** Behaviours of the zoo, by name; default: none. */
  zoo?: readonly string[];
}

const VERSION = '0.11.0';

const disabledRoute: Route = (request, response) => {
  request.resume();
  sendJson(response, 403, errorBody(403, 'Scale-out endpoints are disabled. Restart with --enable-scale-out.'));
};

/** HTTP server in front of one simulated engine, which answers in one dialect. */
export class EngineServer {
  private readonly server: Server;
  private routes: Record<string, Route>;
  private model: string;
  private dialect: EngineDialect;
  private readonly zoo = new ActiveZoo();
  /** Load that is reported with the behaviour `stale-metrics`. */
  private staleLoad: EngineLoad | undefined;
  /** Functions that run the requests with the fault `late`. */
  private readonly late: (() => void)[] = [];

  constructor(private readonly options: EngineServerOptions) {
    this.model = options.model;
    this.dialect = options.dialect;
    if (options.zoo !== undefined) this.zoo.select({ entries: options.zoo });
    this.routes = this.allRoutes();
    this.server = createServer((request, response) => void this.answer(request, response));
    // Responses may take any time, and clients close their idle connections themselves.
    this.server.requestTimeout = 0;
    this.server.keepAliveTimeout = 60_000;
  }

  /** Listens on a port; 0 takes a free one. Resolves to the port. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen(port, host, 8_192, () => resolve((this.server.address() as AddressInfo).port));
    });
  }

  /** Stops listening and breaks all connections. */
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

  private allRoutes(): Record<string, Route> {
    const { options, late } = this;
    const status = () => ({ dialect: this.dialect, model: this.model, late: late.length });
    const select = (selection: ZooSelection) => this.selectZoo(selection);
    return { ...this.dialectRoutes(), ...simulatorRoutes(options.engine, options.identities, { status, select }) };
  }

  /**
   * Replaces the behaviours of the zoo.
   * @returns function that closes the connections, if the engine was restarted
   * @throws RangeError for an unknown name
   */
  private selectZoo(selection: ZooSelection): (() => void) | undefined {
    const { engine } = this.options;
    this.zoo.select(selection);
    const { restart, hasStaleLoad } = this.zoo.server;
    this.staleLoad = hasStaleLoad ? engine.load : undefined;
    if (restart === undefined) return undefined;
    engine.restart(restart.kvShare);
    this.model = restart.model ?? this.model;
    this.dialect = restart.dialect?.(this.dialect) ?? this.dialect;
    this.routes = this.allRoutes();
    return () => this.server.closeAllConnections();
  }

  private get described(): Described {
    const { cumulative, reasoningTokens = 0 } = this.options;
    const isWhole = this.zoo.chunkForm(cumulative).text === 'whole';
    return { model: this.model, dialect: this.dialect, cumulative: isWhole, hasReasoning: reasoningTokens > 0 };
  }

  private get load(): EngineLoad {
    return this.staleLoad ?? this.options.engine.load;
  }

  private dialectRoutes(): Record<string, Route> {
    const { model, dialect, zoo } = this;
    const { engine, identities, scaleOut, reasoningTokens = 0 } = this.options;
    const inScaleOut = (route: Route): Route => (scaleOut ? route : disabledRoute);
    const health: Route = (_, response) =>
      sendBody(response, zoo.server.healthStatus ?? (engine.faults.unhealthy ? 503 : 200), 'text/plain', '');
    const decode = (ids: readonly number[]): string => zoo.decode(identities.detokenize(ids));
    const openAi: Record<string, Route> = {
      'GET /v1/models': (_, response) => sendJson(response, 200, modelList(engine, this.described)),
      'POST /v1/completions': (request, response) => this.openAi(request, response, 'completion'),
      'POST /v1/chat/completions': (request, response) => this.openAi(request, response, 'chat'),
    };
    const metrics: Route = (_, response) =>
      sendBody(response, 200, 'text/plain', metricsPage(engine, this.load, { dialect, model }));
    const info: Route = (_, response) => sendJson(response, 200, sglangInfo(engine, this.described));
    const loads: Route = (_, response) => sendJson(response, 200, { loads: [sglangLoad(this.load)] });
    const routes: Record<EngineDialect, Record<string, Route>> = {
      vllm: {
        ...openAi,
        'GET /health': health,
        'GET /metrics': metrics,
        'GET /version': (_, response) => sendJson(response, 200, { version: VERSION, instance_id: engine.instanceId }),
        'POST /abort_requests': (request, response) => this.abortRequests(request, response),
        'POST /inference/v1/abort_requests': inScaleOut((request, response) => this.abortRequests(request, response)),
        'POST /inference/v1/generate': inScaleOut(async (request, response) =>
          this.generate(readTokenCall(request, await readObject(request), this.intervalRule), response),
        ),
        'POST /v1/chat/completions/derender': inScaleOut(derenderRoute(identities, reasoningTokens)),
        ...vllmControls(engine, identities, decode),
        ...vllmWeights(engine),
      },
      sglang: {
        ...openAi,
        'GET /health': health,
        'GET /metrics': metrics,
        'GET /get_server_info': info,
        'GET /server_info': info,
        'GET /v1/loads': loads,
        'GET /get_load': (_, response) => sendJson(response, 200, [sglangLoad(this.load)]),
        'POST /generate': async (request, response) =>
          this.generate(readSglangCall(request, await readObject(request), this.intervalRule), response),
        'POST /abort_request': (request, response) => this.abortByPrefix(request, response),
        ...sglangControls(engine, identities, decode),
        ...sglangWeights(engine),
      },
      openai: openAi,
    };
    return routes[dialect];
  }

  private async openAi(request: IncomingMessage, response: ServerResponse, form: 'completion' | 'chat'): Promise<void> {
    const body = await readObject(request);
    if (this.zoo.server.restart && typeof body.model === 'string' && body.model !== this.model) {
      throw new RefusedError(404, `The model \`${body.model}\` does not exist.`);
    }
    // The OpenAI routes of SGLang do not know the field, nor do most other servers.
    const interval = this.dialect === 'vllm' ? this.intervalRule : 'ignored';
    this.generate(readOpenAiCall(request, body, form, this.dialect !== 'openai', interval), response);
  }

  private get intervalRule(): IntervalRule {
    return this.zoo.server.intervalRule ?? 'taken';
  }

  private generate(call: GenerateCall, response: ServerResponse): void {
    const turn = this.zoo.take(call);
    if (turn?.answers(response)) return;
    turn?.prepare(call);
    const fault = this.options.engine.faults.take();
    if (fault?.kind === 'late') this.late.push(() => this.run(call, response, undefined, { noticesClose: false }));
    // A fault of the stream replaces the behaviours of the zoo.
    else if (!fault || !this.refuse(fault.kind, response))
      this.run(call, response, fault, { turn: fault ? undefined : turn });
  }

  private run(
    call: GenerateCall,
    response: ServerResponse,
    fault: Fault | undefined,
    { turn, noticesClose = fault?.kind !== 'stall-unnoticed' }: { turn?: ZooTurn; noticesClose?: boolean },
  ): void {
    const { model, dialect } = this;
    const { engine, identities, cumulative, reasoningTokens = 0, experts } = this.options;
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
      scored: scorePrompt(identities, call),
      promptTokens,
      start,
      cumulative: cumulative && turn === undefined,
      reasoningTokens,
      experts: experts && buildExperts(call, experts, identity.promptTokens),
    });
    const names = [call.id, toEngineRequestId(call)];
    const streamInterval = this.intervalOf(call);
    const budget = call.maxTokens ?? Math.max(1, engine.maxModelTokens - promptTokens);
    let sink: TokenSink | undefined;
    let drop: () => void;
    try {
      drop = engine.submit(
        {
          names,
          identity,
          budget,
          minTokens: call.minTokens,
          cacheSalt: call.cacheSalt,
          sessionId: dialect === 'sglang' ? call.sessionId : undefined,
          standsAt: this.zoo.standsAt,
          streamInterval,
        },
        {
          tokens: (from, to) => sink?.tokens(from, to),
          // A response without tokens left ends before submit returns, hence before there is a sink.
          end: (reason) => (sink ? sink.end(reason) : setImmediate(() => sink?.end(reason))),
        },
      );
    } catch (error) {
      if (call.form !== 'sglang' || !call.stream) throw error;
      sendStreamError(response, (error as Error).message);
      return;
    }
    if (!call.stream) sink = new WholeSink(response, format, start);
    else if (turn) {
      const { prompt } = call;
      const before = prompt.kind === 'tokenIds' ? identities.detokenize(prompt.tokenIds.slice(-1)) : '';
      const form = this.zoo.chunkForm(cumulative);
      sink = turn.sink(response, format, { call, form, start, before, drop, streamInterval });
    } else sink = new StreamSink(response, format, start, fault);
    if (noticesClose && !this.zoo.server.missesCloses) response.on('close', drop);
  }

  /** vLLM takes the larger of the field and its own setting, SGLang the field if it has one. */
  private intervalOf({ streamInterval: asked = 0 }: GenerateCall): number {
    const { streamInterval: own = 1 } = this.options;
    return this.dialect === 'sglang' ? asked || own : Math.max(asked, own);
  }

  /** Applies a fault that needs no engine. True if the call is answered, or never will be. */
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
    // As in vLLM, an empty list means all requests.
    if (!this.zoo.server.ignoresAborts) this.options.engine.abort((name) => wanted.size === 0 || wanted.has(name));
    sendJson(response, 200, {});
    this.admitLate();
  }

  private refuseAbort(): void {
    if (this.options.engine.faults.takeAbort()) throw new RefusedError(500, 'simulated refusal');
  }

  private async abortByPrefix(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { rid, abort_all: all } = await readObject(request);
    this.refuseAbort();
    if (!this.zoo.server.ignoresAborts)
      this.options.engine.abort((name) => all === true || (typeof rid === 'string' && name.startsWith(rid)));
    sendBody(response, 200, 'text/plain', '');
    this.admitLate();
  }

  private admitLate(): void {
    for (const run of this.late.splice(0)) run();
  }
}

/** Id of a request inside vLLM. */
function toEngineRequestId({ form, id }: GenerateCall): string {
  if (form === 'chat') return `chatcmpl-${id}`;
  return form === 'tokens' ? `generate-tokens-${id}` : `cmpl-${id}-0`;
}
