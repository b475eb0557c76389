import { BroomwagonError, isBroomwagonError } from '@broomwagon/contracts';
import { context, propagation } from '@opentelemetry/api';
import { Agent, type Dispatcher } from 'undici';
import { EngineAccess } from '../access/engine-access';
import { ADDRESS_REFUSED } from '../access/forbidden-addresses';
import { normalizeBaseUrl } from '../base-url';
import type { EngineAdapterOptions } from '../engine-adapter';
import { callSignal } from './deadline';
import { EngineStream } from './engine-stream';
import { formatJson } from './list-json';
import { toRefusalError } from './refusal';
import { createConnector, isStale } from './stale-connections';
import type { StopSignal } from '../stop-signal';

/** Largest answer of a call that is no stream, bytes. */
const MAX_ANSWER_BYTES = 16 * 1_048_576;

export const DEFAULT_CONNECT_TIMEOUT_MS = 5_000;
export const DEFAULT_CALL_TIMEOUT_MS = 5_000;

const DEFAULT_MAX_STREAMS = 4_096;
/** Connections to one engine for everything that is no stream. */
const CALL_CONNECTIONS = 64;

/** Pools of connections, one per engine in each agent, shared by all adapters of the process. */
const agents = new Map<string, Agent>();

/** `bursts`: streams with several tokens in an event, which is more than a small read buffer holds. */
type Purpose = 'streams' | 'bursts' | 'calls' | 'repeats';

/** Engines behind uvicorn close connections that are idle for 5 s, and the timers of undici may be a second late. */
const IDLE_MS = 2_000;

/**
 * Connections for a purpose. Streams have no deadline, since generations may last hours; calls have a deadline by their
 * signal. Idle connections are closed before engines close them; connections of `repeats` are used once.
 */
function agentFor(purpose: Purpose, connectTimeoutMs: number, connections: number): Agent {
  const name = `${purpose} ${connectTimeoutMs} ${connections}`;
  let agent = agents.get(name);
  if (!agent) {
    agent = new Agent({
      connections,
      pipelining: purpose === 'repeats' ? 0 : 1,
      keepAliveTimeout: IDLE_MS,
      keepAliveMaxTimeout: IDLE_MS,
      headersTimeout: 0,
      bodyTimeout: 0,
      connect: createConnector(connectTimeoutMs, purpose !== 'bursts'),
    });
    agents.set(name, agent);
  }
  return agent;
}

type Method = 'GET' | 'POST' | 'OPTIONS';

/** HTTP to one engine: JSON calls with a deadline, streams without a deadline, and errors of Broomwagon. */
export class EngineHttp {
  readonly baseUrl: string;
  /** Reason why the engine must not be called. */
  private readonly refusal: string | undefined;
  private address?: { origin: string; prefix: string };
  private readonly callTimeoutMs: number;
  private readonly streams: () => Agent;
  private readonly bursts: () => Agent;
  /** Agent of calls, apart from the streams, so that an abort never waits for a stream to end. */
  private readonly calls: () => Agent;
  private readonly repeats: () => Agent;

  constructor(
    url: string,
    private readonly options: EngineAdapterOptions = {},
  ) {
    this.baseUrl = normalizeBaseUrl(url);
    this.refusal = (options.access ?? new EngineAccess()).findRefusal(this.baseUrl);
    this.callTimeoutMs = options.callTimeoutMs ?? DEFAULT_CALL_TIMEOUT_MS;
    const connectTimeoutMs = options.connectTimeoutMs ?? DEFAULT_CONNECT_TIMEOUT_MS;
    const { maxStreams = DEFAULT_MAX_STREAMS } = options;
    this.streams = () => agentFor('streams', connectTimeoutMs, maxStreams);
    this.bursts = () => agentFor('bursts', connectTimeoutMs, maxStreams);
    this.calls = () => agentFor('calls', connectTimeoutMs, CALL_CONNECTIONS);
    this.repeats = () => agentFor('repeats', connectTimeoutMs, maxStreams);
  }

  /** Body of a GET as text; undefined for any status but 200. */
  async getText(path: string, signal?: AbortSignal): Promise<string | undefined> {
    const { status, text } = await this.call('GET', path, undefined, signal);
    return status === 200 ? text : undefined;
  }

  /** Body of a GET as a JSON object or array; undefined for any other answer. */
  async getJson(path: string, signal?: AbortSignal): Promise<Record<string, unknown> | undefined> {
    const text = await this.getText(path, signal);
    return text === undefined ? undefined : parseObject(text);
  }

  /** Makes a call that is no stream, and returns status and whole body. A body of bytes is sent as it is. */
  async call(
    method: Method,
    path: string,
    body?: unknown,
    signal?: StopSignal,
    timeoutMs: number = this.callTimeoutMs,
  ): Promise<{ status: number; text: string }> {
    const call = callSignal(timeoutMs, signal);
    try {
      const response = await this.send(this.calls(), method, path, body, {}, call.signal);
      return { status: response.statusCode, text: await readText(response.body, MAX_ANSWER_BYTES) };
    } catch (error) {
      if (call.isOver()) {
        throw new BroomwagonError('ENGINE_UNREACHABLE', `${this.baseUrl}${path} did not answer within ${timeoutMs} ms`);
      }
      throw this.transportError(error);
    } finally {
      call.clear();
    }
  }

  /** Opens a generation whose answer is passed on. Its pieces have no deadline; the signal ends the call. */
  async open(path: string, body: unknown, headers: Record<string, string>, signal: AbortSignal) {
    const answer = await this.send(this.streams(), 'POST', path, body, headers, signal);
    const header = (field: string): string => String(answer.headers[field] ?? '').toLowerCase();
    const [contentType, contentEncoding] = [header('content-type'), header('content-encoding') || 'identity'];
    const retryAfter = header('retry-after') || undefined;
    const pieces = answer.body as AsyncIterable<Buffer>;
    return { status: answer.statusCode, contentType, contentEncoding, retryAfter, pieces };
  }

  /** A stream of server-sent events, for {@link receive}. */
  stream(take: (chunk: Buffer) => boolean): EngineStream {
    return new EngineStream(take, this.callTimeoutMs);
  }

  /**
   * Receives a stream to its end. Throws the error of Broomwagon that any other answer means.
   * @param isCollected the engine is asked for several tokens in each event
   */
  async receive(
    stream: EngineStream,
    path: string,
    body: unknown,
    headers: Record<string, string>,
    isCollected = false,
  ): Promise<void> {
    const options = this.buildOptions('POST', path, body, headers);
    const isAnswered = (): boolean => stream.status !== 0;
    const agent = isCollected ? this.bursts() : this.streams();
    await this.repeatedIfStale(isAnswered, agent, (dispatcher) => stream.run(dispatcher, options));
    if (!stream.isOpen) throw toRefusalError(this.baseUrl + path, stream);
  }

  /** Converts errors of undici to errors of Broomwagon. */
  transportError(error: unknown): BroomwagonError {
    if (isBroomwagonError(error)) return error;
    const code = errorCode(error);
    const unreachable = code !== undefined && UNREACHABLE_CODES.has(code);
    const reason = error instanceof Error && error.message !== '' ? error.message : (code ?? 'unknown');
    return new BroomwagonError(
      unreachable ? 'ENGINE_UNREACHABLE' : 'ENGINE_ERROR',
      unreachable ? `${this.baseUrl} does not answer: ${reason}` : `Connection to ${this.baseUrl} broke: ${reason}`,
      { cause: error, details: code === undefined ? undefined : { code } },
    );
  }

  private send(
    dispatcher: Agent,
    method: Method,
    path: string,
    body: unknown,
    headers: Record<string, string>,
    signal: AbortSignal,
  ): Promise<Dispatcher.ResponseData> {
    const options = { ...this.buildOptions(method, path, body, headers), signal };
    return this.repeatedIfStale(
      () => signal.aborted,
      dispatcher,
      (one) => one.request(options),
    );
  }

  /** Redirects are not followed: they would take the key to any address. */
  private buildOptions(method: Method, path: string, body: unknown, headers: Record<string, string>) {
    if (this.refusal !== undefined) throw new BroomwagonError('ENGINE_UNREACHABLE', this.refusal);
    const { origin, prefix } = (this.address ??= parseAddress(this.baseUrl));
    // A proxy would compress a stream, and hold its events back.
    const all: Record<string, string> = { 'accept-encoding': 'identity' };
    // Adds no header while nothing is traced.
    propagation.inject(context.active(), all);
    if (body !== undefined) all['content-type'] = 'application/json';
    if (this.options.apiKey !== undefined) all.authorization = `Bearer ${this.options.apiKey}`;
    const json = body === undefined || body instanceof Buffer ? body : formatJson(body as object);
    return { origin, path: prefix + path, method, headers: Object.assign(all, headers), body: json };
  }

  /**
   * Sends a request. If the engine had closed the idle connection, it has not seen the request: the request is repeated
   * once on a new connection.
   */
  private async repeatedIfStale<T>(
    isAnswered: () => boolean,
    dispatcher: Agent,
    send: (dispatcher: Agent) => Promise<T>,
  ): Promise<T> {
    const sentAt = performance.now();
    try {
      return await send(dispatcher);
    } catch (error) {
      if (isAnswered() || !isStale(error, performance.now() - sentAt)) throw error;
      // An engine that does not answer now has crashed on the request, or just before it.
      return send(this.repeats()).catch((again: unknown) => {
        throw isAnswered() ? again : error;
      });
    }
  }
}

function parseAddress(url: string): { origin: string; prefix: string } {
  const { origin, pathname } = new URL(url);
  return { origin, prefix: pathname.replace(/\/$/, '') };
}

const UNREACHABLE_CODES = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ETIMEDOUT',
  'UND_ERR_CONNECT_TIMEOUT',
  ADDRESS_REFUSED,
]);

function errorCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

/** A text of JSON, or a number that Python writes and JSON does not have. */
const TEXT_OR_NON_NUMBER = /"(?:[^"\\]|\\.)*"|-?Infinity|NaN/g;

/** A JSON object or array, where `NaN` and infinite numbers are null; undefined for anything else. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  const value = parsed(text) ?? parsed(text.replace(TEXT_OR_NON_NUMBER, (part) => (part[0] === '"' ? part : 'null')));
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** The body as text, at most `limit` bytes; the rest is not read. */
async function readText(body: Dispatcher.ResponseData['body'], limit: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    chunks.push(chunk as Buffer);
    bytes += (chunk as Buffer).length;
    // Leaving the loop destroys the body.
    if (bytes >= limit) break;
  }
  return Buffer.concat(chunks).toString('utf8');
}
