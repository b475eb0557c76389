import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { answerParent } from '../child';

/** Port and counts of an engine. */
export interface EngineCounts {
  port: number;
  /** Number of responses that are streaming. */
  streams: number;
  /** Number of tokens sent in all responses together. */
  tokens: number;
}

/** Body of `/generate` of SGLang; routers pass `custom_params` through unread. */
interface Body {
  rid?: string;
  stream?: boolean;
  return_logprob?: boolean;
  sampling_params: {
    max_new_tokens: number;
    /** Rate of the stream. Absent: all tokens are sent at once. */
    custom_params?: { chunksPerSecond: number; tokensPerChunk: number };
  };
}

interface Stream {
  body: Body;
  response: ServerResponse;
  made: number;
  dueMs: number;
}

const INFO = JSON.stringify({
  model_path: 'bench',
  served_model_name: 'bench',
  context_length: 1_000_000,
  instance_id: 'bench',
  incremental_streaming_output: true,
});
/** Answers to requests that gateways send to an engine before they use it, by path. */
const ANSWERS = new Map([
  ['/health', ''],
  ['/abort_request', ''],
  ['/get_server_info', INFO],
  ['/server_info', INFO],
  ['/model_info', INFO],
  ['/v1/models', JSON.stringify({ object: 'list', data: [{ id: 'bench', object: 'model', owned_by: 'sglang' }] })],
]);
const TICK_MS = 5;
/** Log probability in 32 bits, as engines compute it. */
const LOGPROB = Math.fround(-0.123_456_78);
const streams = new Set<Stream>();
let tokens = 0;

function createAnswer(
  { rid, return_logprob: hasLogprobs, sampling_params: { max_new_tokens: all } }: Body,
  from: number,
) {
  return (to: number): string => {
    const ids = Array.from({ length: to - from }, (_, index) => 1_000 + ((from + index) % 100_000));
    tokens += ids.length;
    return JSON.stringify({
      text: ' word'.repeat(ids.length),
      output_ids: ids,
      meta_info: {
        id: rid,
        finish_reason: to < all ? null : { type: 'length', length: all },
        prompt_tokens: 4,
        completion_tokens: to,
        cached_tokens: 0,
        weight_version: '1',
        ...(hasLogprobs && { output_token_logprobs: ids.map((id) => [LOGPROB, id, null]) }),
      },
    });
  };
}

function generate(body: Body, response: ServerResponse): void {
  const { stream, sampling_params: sampling } = body;
  const rate = sampling.custom_params;
  if (!stream) {
    response.writeHead(200, { 'content-type': 'application/json' }).end(createAnswer(body, 0)(sampling.max_new_tokens));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  if (rate === undefined) {
    response.end(`data: ${createAnswer(body, 0)(sampling.max_new_tokens)}\n\ndata: [DONE]\n\n`);
    return;
  }
  // Streams start at different times, so that their chunks are not all sent together.
  const dueMs = performance.now() + Math.random() * (1_000 / rate.chunksPerSecond);
  const one: Stream = { body, response, made: 0, dueMs };
  streams.add(one);
  response.once('close', () => streams.delete(one));
  response.flushHeaders();
}

setInterval(() => {
  const now = performance.now();
  for (const stream of streams) {
    if (stream.dueMs > now) continue;
    const { chunksPerSecond, tokensPerChunk } = stream.body.sampling_params.custom_params!;
    stream.dueMs += 1_000 / chunksPerSecond;
    const all = stream.body.sampling_params.max_new_tokens;
    const to = Math.min(all, stream.made + tokensPerChunk);
    stream.response.write(`data: ${createAnswer(stream.body, stream.made)(to)}\n\n`);
    stream.made = to;
    if (to < all) continue;
    streams.delete(stream);
    stream.response.end('data: [DONE]\n\n');
  }
}, TICK_MS);

async function readBody(request: IncomingMessage): Promise<Body> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return JSON.parse(Buffer.concat(chunks).toString()) as Body;
}

const server = createServer({ keepAliveTimeout: 600_000 }, (request, response) => {
  const answer = ANSWERS.get(request.url!);
  if (request.url === '/generate') void readBody(request).then((body) => generate(body, response));
  else response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' }).end(answer);
});

/** An engine that uses as little CPU as possible: its tokens mean nothing. */
answerParent<void, EngineCounts>(async () => {
  if (!server.listening) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 8_192, resolve));
  const { port } = server.address() as AddressInfo;
  return { port, streams: streams.size, tokens };
});
