import type { PauseMode } from '@broomwagon/contracts';
import type { SimulatedEngine } from '../engine/simulated-engine';
import type { SampleIdentities, WirePrompt } from '../tokens/sample-identity';
import { RefusedError, sendBody, sendJson } from './answers';
import { chatPrompt, completionPrompt } from './generate-call';
import { readObject } from './request-body';
import type { Route } from './route';

const SGLANG_MODES: Record<string, PauseMode> = { abort: 'abort', in_place: 'keep', retract: 'keep' };

/** Control routes of vLLM in its development mode, in which trainers run it, and the routes that AReaL adds. */
export function vllmControls(
  engine: SimulatedEngine,
  identities: SampleIdentities,
  decode: (ids: readonly number[]) => string,
): Record<string, Route> {
  return {
    'POST /pause': async (request, response, query) => {
      request.resume();
      const mode = query.get('mode') ?? 'abort';
      if (mode !== 'abort' && mode !== 'wait' && mode !== 'keep') throw new RefusedError(422, 'no such mode');
      await engine.pause(mode);
      sendJson(response, 200, { status: 'paused' });
    },
    'POST /resume': (request, response) => {
      request.resume();
      engine.resume();
      sendJson(response, 200, { status: 'resumed' });
    },
    'POST /areal_pause_generation': async (request, response) => {
      request.resume();
      await engine.pause('abort');
      sendJson(response, 200, { success: true, message: 'Generation paused.' });
    },
    'POST /areal_continue_generation': (request, response) => {
      request.resume();
      engine.resume();
      sendJson(response, 200, { success: true, message: 'Generation continued.' });
    },
    'GET /is_paused': (_, response) => sendJson(response, 200, { is_paused: engine.isPaused }),
    'POST /reset_prefix_cache': (request, response) => {
      request.resume();
      sendJson(response, 200, { success: engine.resetPrefixCache() });
    },
    'POST /tokenize': async (request, response) => {
      const body = await readObject(request);
      const prompt = body.messages === undefined ? completionPrompt(body.prompt, false) : chatPrompt(body);
      sendTokens(response, identities, prompt, engine.maxModelTokens);
    },
    'POST /detokenize': async (request, response) => {
      sendJson(response, 200, { prompt: decode(parseTokens(await readObject(request))) });
    },
  };
}

/** Control routes of SGLang. */
export function sglangControls(
  engine: SimulatedEngine,
  identities: SampleIdentities,
  decode: (ids: readonly number[]) => string,
): Record<string, Route> {
  const flush: Route = (request, response) => {
    request.resume();
    const flushed = engine.resetPrefixCache();
    sendBody(response, flushed ? 200 : 400, 'text/plain', flushed ? 'Cache flushed.' : 'Flush cache failed.');
  };
  return {
    'POST /pause_generation': async (request, response) => {
      const { mode = 'abort' } = await readObject(request);
      const known = typeof mode === 'string' && Object.hasOwn(SGLANG_MODES, mode) ? SGLANG_MODES[mode] : undefined;
      if (known === undefined) throw new RefusedError(400, 'no such mode');
      await engine.pause(known);
      sendJson(response, 200, { status: 'ok', message: 'Generation paused successfully.' });
    },
    'POST /continue_generation': async (request, response) => {
      await readObject(request);
      engine.resume();
      sendJson(response, 200, { status: 'ok', message: 'Generation continued successfully.' });
    },
    'POST /close_session': async (request, response) => {
      const { session_id: sessionId } = await readObject(request);
      if (typeof sessionId !== 'string') throw new RefusedError(422, 'session_id: Field required');
      if (engine.faults.takeAbort()) throw new RefusedError(500, 'simulated refusal');
      engine.closeSession(sessionId);
      sendBody(response, 200, 'text/plain', '');
    },
    'GET /flush_cache': flush,
    'POST /flush_cache': flush,
    'POST /tokenize': async (request, response) => {
      const body = await readObject(request);
      const prompt = body.messages === undefined ? completionPrompt(body.prompt, false) : chatPrompt(body);
      sendTokens(response, identities, prompt, engine.maxModelTokens);
    },
    'POST /detokenize': async (request, response) => {
      sendJson(response, 200, { text: decode(parseTokens(await readObject(request))) });
    },
  };
}

function sendTokens(
  response: Parameters<Route>[1],
  identities: SampleIdentities,
  prompt: WirePrompt,
  maxModelTokens: number,
): void {
  const tokens = identities.tokenize(prompt);
  sendJson(response, 200, { count: tokens.length, max_model_len: maxModelTokens, tokens });
}

/** Reads token ids. Throws RefusedError 400 for anything else. */
function parseTokens({ tokens }: Record<string, unknown>): number[] {
  const prompt = completionPrompt(tokens, true);
  if (prompt.kind !== 'tokenIds') throw new RefusedError(400, 'tokens must be token ids');
  return prompt.tokenIds;
}
