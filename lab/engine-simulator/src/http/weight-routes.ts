import type { IncomingMessage, ServerResponse } from 'node:http';
import type { SimulatedEngine } from '../engine/simulated-engine';
import { RefusedError, sendJson } from './answers';
import { readObject } from './request-body';
import type { Route } from './route';

type Handler = (body: Record<string, unknown>, response: ServerResponse) => void;

/**
 * Routes of vLLM and AReaL for weights, groups of processes, memory and adapters. The engine records each call for
 * tests to read.
 */
export function vllmWeights(engine: SimulatedEngine): Record<string, Route> {
  const done: Handler = (_, response) => sendJson(response, 200, { status: 'ok' });
  const renamed: Handler = (body, response) => {
    loadWeights(engine, body.weight_version ?? body.new_version);
    sendJson(response, 200, { message: 'Weight update finished' });
  };
  return {
    ...recorded(engine, done, '/sleep', '/wake_up', '/init_weight_transfer_engine', '/start_weight_update'),
    ...recorded(engine, done, '/update_weights', '/load_lora_adapter', '/skyrl/v1/load_lora_adapter'),
    ...recorded(engine, done, '/init_broadcaster', '/areal_init_weights_update_group', '/v1/unload_lora_adapter'),
    ...recorded(engine, done, '/areal_set_update_weight_meta', '/areal_set_update_weight_meta_lora'),
    ...recorded(engine, renamed, '/areal_update_weights', '/areal_update_weights_lora'),
    ...recorded(engine, renamed, '/areal_update_weights_xccl', '/areal_update_weights_lora_xccl'),
    ...recorded(engine, renamed, '/finish_weight_update', '/update_weight_version'),
    ...recorded(engine, (_, response) => sendJson(response, 200, { results: [null] }), '/collective_rpc'),
    'GET /get_world_size': (_, response) => sendJson(response, 200, { world_size: engine.options.ranks ?? 1 }),
    'GET /weight_info': (_, response) => sendVersion(engine, response),
  };
}

/** Routes of SGLang for weights, groups of processes, memory and adapters; also recorded. */
export function sglangWeights(engine: SimulatedEngine): Record<string, Route> {
  const done: Handler = (body, response) => {
    loadWeights(engine, body.weight_version ?? body.new_version);
    sendJson(response, 200, { success: true, message: 'Succeeded.' });
  };
  const loaded: Handler = (body, response) => {
    if (typeof body.model_path !== 'string') throw new RefusedError(400, 'model_path must be a string');
    done(body, response);
  };
  const received: Handler = (body, response) => {
    const { serialized_named_tensors: tensors } = body;
    if (!Array.isArray(tensors)) throw new RefusedError(400, 'serialized_named_tensors must be a list');
    done(body, response);
  };
  // SGLang ends all requests unless the body names `abort_all_requests: false` (http_server.py, io_struct.py).
  const renamed: Handler = (body, response) => {
    if (body.abort_all_requests !== false) engine.abort(() => true);
    done(body, response);
  };
  const version: Route = (_, response) => sendVersion(engine, response);
  return {
    ...recorded(engine, loaded, '/update_weights_from_disk'),
    ...recorded(engine, done, '/update_weights_from_distributed', '/pull_weights'),
    ...recorded(engine, renamed, '/update_weight_version'),
    ...recorded(engine, received, '/update_weights_from_tensor'),
    ...recorded(engine, done, '/post_process_weights'),
    ...recorded(engine, done, '/init_weights_update_group', '/destroy_weights_update_group'),
    ...recorded(engine, done, '/release_memory_occupation', '/resume_memory_occupation', '/load_lora_adapter'),
    'GET /get_weight_version': version,
    'GET /get_model_info': version,
    'GET /model_info': version,
  };
}

function recorded(engine: SimulatedEngine, handle: Handler, ...paths: string[]): Record<string, Route> {
  const createRoute = (path: string) => async (request: IncomingMessage, response: ServerResponse) => {
    const body = await readObject(request);
    engine.controls.push({ path, body });
    handle(body, response);
  };
  return Object.fromEntries(paths.map((path) => [`POST ${path}`, createRoute(path)]));
}

function loadWeights(engine: SimulatedEngine, version: unknown): void {
  engine.loadWeights(version === undefined ? undefined : String(version));
}

/** Sends the weight version; until a trainer has named the weights, 404 like older versions without the route. */
function sendVersion({ weightVersion }: SimulatedEngine, response: ServerResponse): void {
  if (weightVersion === undefined) sendJson(response, 404, { detail: 'Not Found' });
  else sendJson(response, 200, { weight_version: weightVersion });
}
