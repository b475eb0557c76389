import { errorBody } from '../../http/answers';
import { endsAfter } from '../stages/ends-after';
import type { Frame, Stage, ZooEntry } from '../zoo-entry';

const TEST = 'lab/engine-simulator/src/zoo/zoo-streams.spec.ts';
const ALL = ['vllm', 'sglang', 'openai'] as const;
const MESSAGE = 'EngineCore encountered an issue';
const ENDING: Frame[] = [{ kind: 'done' }, { kind: 'end' }];

const withoutDone: Stage = (_context, send) => (frame) => {
  if (frame.kind !== 'done') send(frame);
};

/** Adds a keep-alive line before each chunk. */
const comments: Stage = (_context, send) => (frame) => {
  if (frame.kind === 'chunk') send({ kind: 'comment', text: 'keep-alive' });
  send(frame);
};

/** Behaviours of streams that end in unusual ways, or are sent in unusual bytes. */
export const FAILURE_ENTRIES: readonly ZooEntry[] = [
  {
    name: 'done-without-reason',
    dialects: ['vllm', 'openai'],
    behaviour: 'ends the stream of a failed or aborted request with `[DONE]` alone',
    source: 'https://github.com/vllm-project/vllm/pull/47933, https://github.com/vllm-project/vllm/issues/19536',
    release: 'vLLM 0.9 (prompts that do not fit), vLLM of July 2026 (aborts of `/inference/v1/generate`)',
    broomwagon: 'tokens are kept and continued elsewhere; without a token the call failed',
    test: TEST,
    failure: 'aborted',
    stage: endsAfter(() => ENDING),
  },
  {
    name: 'error-in-data',
    dialects: ALL,
    behaviour: 'sends an error under `data:` after status 200, then `[DONE]`',
    source: 'vllm/entrypoints/openai/engine/serving.py (`create_streaming_error_response`)',
    release: 'vLLM from 0.6, SGLang',
    broomwagon: 'an error; the tokens before it are kept',
    test: TEST,
    failure: 'ENGINE_ERROR',
    stage: endsAfter(() => [{ kind: 'value', value: errorBody(500, MESSAGE) }, ...ENDING]),
  },
  {
    name: 'error-text-in-data',
    dialects: ALL,
    behaviour: 'sends `{"error": "..."}` whose value is a text',
    source: 'https://github.com/Blaizzy/nativ/pull/195, huggingface/text-generation-inference (`error_type`)',
    release: 'mlx servers of August 2026, `/generate_stream` of TGI 3',
    broomwagon: 'an error; the tokens before it are kept',
    test: TEST,
    failure: 'ENGINE_ERROR',
    stage: endsAfter(() => [{ kind: 'value', value: { error: MESSAGE } }, ...ENDING]),
  },
  {
    name: 'error-event',
    dialects: ALL,
    behaviour: 'sends an event named `error`, whose data have no field `error`',
    source: 'servers with axum or sse-starlette whose handlers name the event',
    release: 'OpenAI-compatible servers',
    broomwagon: 'an error; the tokens before it are kept',
    test: TEST,
    failure: 'ENGINE_ERROR',
    stage: endsAfter(() => [{ kind: 'value', event: 'error', value: { message: MESSAGE } }, ...ENDING]),
  },
  {
    name: 'error-event-without-data',
    dialects: ALL,
    behaviour: 'sends an event named `error` with a comment in place of data',
    source: 'https://github.com/ai-dynamo/dynamo/pull/8674',
    release: 'NVIDIA Dynamo of April 2026',
    broomwagon: 'an error; the tokens before it are kept',
    test: TEST,
    failure: 'ENGINE_ERROR',
    stage: endsAfter(() => [{ kind: 'comment', event: 'error', text: MESSAGE }, ...ENDING]),
  },
  {
    name: 'missing-done',
    dialects: ALL,
    behaviour: 'ends a response with its finish reason and no `[DONE]`',
    source: 'https://html.spec.whatwg.org/multipage/server-sent-events.html (has no such end)',
    release: 'OpenAI-compatible servers',
    broomwagon: 'the finish reason is the end',
    test: TEST,
    stage: withoutDone,
  },
  {
    name: 'ends-midway',
    dialects: ALL,
    behaviour: 'ends the response in the middle, without a reason, `[DONE]` or a broken connection',
    source:
      'proxies whose engine is killed (HTTP/1.0, `Connection: close`), https://github.com/ggml-org/llama.cpp/pull/16109',
    release: 'any; llama.cpp up to September 2025 after an error',
    broomwagon: 'an error; the tokens before it are kept',
    test: TEST,
    failure: 'ENGINE_ERROR',
    stage: endsAfter(() => [{ kind: 'end' }]),
  },
  {
    name: 'closes-before-answer',
    dialects: ALL,
    behaviour: 'takes a request and closes its connection without an answer',
    source: 'engines that are killed, proxies that restart',
    release: 'any',
    broomwagon: 'an error; the request is aborted by id too, and begins elsewhere',
    test: TEST,
    failure: 'ENGINE_ERROR',
    answer: (response) => void response.destroy(),
  },
  {
    name: 'keep-alive-comments',
    dialects: ALL,
    behaviour: 'sends comment lines between chunks',
    source: 'https://html.spec.whatwg.org/multipage/server-sent-events.html',
    release: 'proxies, sse-starlette',
    broomwagon: 'they count as silence',
    test: TEST,
    stage: comments,
  },
  {
    name: 'whole-answer',
    dialects: ALL,
    behaviour: 'answers a request for a stream with one JSON body',
    source: 'proxies that buffer',
    release: 'OpenAI-compatible servers',
    broomwagon: 'an error of the protocol; the request waits for another server, or ends at once if the pool has none',
    test: TEST,
    failure: 'ENGINE_PROTOCOL',
    prepare: (call) => {
      call.stream = false;
    },
  },
  {
    name: 'gzip-accepted',
    dialects: ALL,
    behaviour: 'compresses a stream if the client accepts it',
    source: 'proxies (nginx `gzip_types text/event-stream`)',
    release: 'nginx',
    broomwagon: 'asks for `identity`',
    test: TEST,
    wire: { gzip: 'accepted' },
  },
  {
    name: 'gzip-always',
    dialects: ALL,
    behaviour: 'compresses a stream whatever the client accepts',
    source: 'proxies',
    release: 'misconfigured proxies',
    broomwagon: 'an error of the protocol after the headers',
    test: TEST,
    failure: 'ENGINE_PROTOCOL',
    wire: { gzip: 'always' },
  },
  {
    name: 'crlf',
    dialects: ALL,
    behaviour: 'ends lines with CR and LF',
    source: 'sse-starlette (`DEFAULT_SEPARATOR`)',
    release: 'servers with sse-starlette',
    broomwagon: 'reads all line ends of the standard',
    test: TEST,
    wire: { lineEnd: '\r\n' },
  },
  {
    name: 'every-byte',
    dialects: ALL,
    behaviour: 'sends each byte by itself',
    source: 'networks and proxies',
    release: 'any',
    broomwagon: 'reads lines, whatever the bytes arrive in',
    test: TEST,
    wire: { chunkBytes: 1 },
  },
  {
    name: 'cut-at-byte',
    dialects: ALL,
    behaviour: 'breaks the connection at any byte',
    source: 'networks, engines that are killed',
    release: 'any',
    broomwagon: 'an error, unless the finish reason has arrived; the tokens before it are kept',
    test: TEST,
    failure: 'ENGINE_ERROR',
    wire: { isCut: true },
  },
];
