import type { ServerResponse } from 'node:http';
import { errorBody } from '../../http/answers';
import type { Stage, ZooEntry } from '../zoo-entry';

const TEST = 'lab/engine-simulator/src/zoo/zoo-servers.spec.ts';
const STREAMS_TEST = 'lab/engine-simulator/src/zoo/zoo-streams.spec.ts';
const INTERVAL_TEST = 'lab/engine-simulator/src/stream-interval.spec.ts';
const ALL = ['vllm', 'sglang', 'openai'] as const;
const OWN = ['vllm', 'sglang'] as const;
/** Seconds that a full server asks its clients to wait. */
const RETRY_AFTER_SECONDS = 1;

function refuse(response: ServerResponse, status: number, headers: Record<string, string> = {}): void {
  const body = JSON.stringify(errorBody(status, 'The request queue is full.'));
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
}

/** Sends `at` tokens and then nothing more, not even an end. */
const silent: Stage = ({ at }, send) => {
  let tokens = 0;
  return (frame) => {
    if (frame.kind === 'chunk') tokens += frame.chunk.tokenCount;
    if (tokens <= at && frame.kind === 'chunk' && frame.chunk.reason === undefined) send(frame);
  };
};

/** Behaviours of servers that are full or unhealthy, or were restarted or replaced. */
export const SERVER_ENTRIES: readonly ZooEntry[] = [
  {
    name: 'full-429',
    dialects: ALL,
    behaviour: 'refuses requests with 429 while its queue is full',
    source: 'vllm-project/router, src/middleware.rs (`concurrency_limit_middleware`)',
    release: 'vLLM router 0.1.17',
    broomwagon: 'busy, not failed: another server first, then it waits',
    test: STREAMS_TEST,
    failure: 'ENGINE_BUSY',
    answer: (response) => refuse(response, 429),
  },
  {
    name: 'full-503',
    dialects: ALL,
    behaviour: 'refuses requests with 503 while its queue is full',
    source: 'https://github.com/sgl-project/sglang/pull/7565 (`--max-queued-requests`)',
    release: 'SGLang 0.5',
    broomwagon: 'busy, not failed: another server first, then it waits',
    test: STREAMS_TEST,
    failure: 'ENGINE_BUSY',
    answer: (response) => refuse(response, 503),
  },
  {
    name: 'full-retry-after',
    dialects: ALL,
    behaviour: 'refuses requests with 429 and `Retry-After`',
    source: 'https://github.com/smg-project/smg/pull/1577 (503 with `Retry-After: 1` for a preempted request)',
    release: 'SMG of June 2026, rate limits of proxies (RFC 6585)',
    broomwagon: 'obeys the header, and passes it on',
    test: STREAMS_TEST,
    failure: 'ENGINE_BUSY',
    answer: (response) => refuse(response, 429, { 'retry-after': String(RETRY_AFTER_SECONDS) }),
  },
  {
    name: 'hung-healthy',
    dialects: ALL,
    behaviour: 'generates nothing more, while `/health` answers 200',
    source: 'https://github.com/vllm-project/vllm/issues/42897, https://github.com/sgl-project/sglang/issues/6624',
    release: 'vLLM 0.21.0, SGLang 0.4.6',
    broomwagon:
      'silence ends the call (`ENGINE_STALLED`), and it continues elsewhere; a server that is silent to all of its callers loses its calls after 45 s',
    test: STREAMS_TEST,
    failure: 'ENGINE_STALLED',
    stage: silent,
  },
  {
    name: 'unhealthy-while-streaming',
    dialects: OWN,
    behaviour: 'answers `/health` with 503 while tokens flow',
    source: 'https://github.com/sgl-project/sglang/issues/22511',
    release: 'SGLang 0.5.10',
    broomwagon: 'gets no new requests; streams with tokens go on, for as long as tokens flow',
    test: TEST,
    server: { healthStatus: 503 },
  },
  {
    name: 'restart-other-model',
    dialects: ALL,
    behaviour: 'is started again at its address with another model',
    source: 'operators',
    release: 'any',
    broomwagon: 'learns the model of each start',
    test: TEST,
    server: { restart: { model: 'other-model' } },
  },
  {
    name: 'restart-other-kv-size',
    dialects: OWN,
    behaviour: 'is started again with a smaller KV cache',
    source: 'operators (`--gpu-memory-utilization`)',
    release: 'any',
    broomwagon: 'learns the size of each start',
    test: TEST,
    server: { restart: { kvShare: 0.1 } },
  },
  {
    name: 'port-reused',
    dialects: OWN,
    behaviour: 'another engine answers at its address',
    source: 'schedulers that reuse hosts and ports',
    release: 'any',
    broomwagon: 'an engine of another start: its leases end, and it is probed again',
    test: TEST,
    server: { restart: { model: 'other-model', dialect: (before) => (before === 'vllm' ? 'sglang' : 'vllm') } },
  },
  {
    name: 'interval-ignored',
    dialects: ['vllm'],
    behaviour: 'ignores the field `stream_interval`',
    source: 'https://github.com/vllm-project/vllm/pull/49754 (the field); unknown fields are allowed',
    release: 'vLLM up to 0.26',
    broomwagon: 'takes single tokens; needs `--stream-interval` of the engine',
    test: INTERVAL_TEST,
    server: { intervalRule: 'ignored' },
  },
  {
    name: 'interval-not-kept',
    dialects: OWN,
    behaviour: 'takes the field `stream_interval`, and sends single tokens all the same',
    source: 'servers and proxies that check the fields of an engine and cut its events up',
    release: 'none known',
    broomwagon: 'takes single tokens, and marks the server (`observedStreamInterval`)',
    test: 'apps/gateway/src/core/signs.spec.ts',
    prepare: (call) => {
      call.streamInterval = undefined;
    },
    server: {},
  },
  {
    name: 'interval-refused',
    dialects: OWN,
    behaviour: 'refuses requests with the field `stream_interval` with 400',
    source: 'servers that allow no unknown field',
    release: 'none known',
    broomwagon: 'asks without the field, unless the client has sent it',
    test: INTERVAL_TEST,
    server: { intervalRule: 'refused' },
  },
  {
    name: 'interval-failed',
    dialects: ['sglang'],
    behaviour: 'fails with 500 at requests with the field `stream_interval`',
    source: 'sglang/srt/managers/tokenizer_manager.py (`SamplingParams(**sampling_kwargs)`)',
    release: 'SGLang up to 0.4.6',
    broomwagon: 'probes the field before it sends the field',
    test: INTERVAL_TEST,
    server: { intervalRule: 'failed' },
  },
  {
    name: 'stale-metrics',
    dialects: OWN,
    behaviour: 'reports a load that does not change',
    source: 'https://github.com/vllm-project/vllm/issues/40926',
    release: 'vLLM 0.23.1',
    broomwagon: 'routes by its own leases',
    test: TEST,
    server: { hasStaleLoad: true },
  },
  {
    name: 'aborts-ignored',
    dialects: OWN,
    behaviour: 'answers an abort by id and goes on',
    source: 'https://github.com/sgl-project/sglang/issues/6531',
    release: 'sgl-router',
    broomwagon: 'closes the connection too',
    test: TEST,
    server: { ignoresAborts: true },
  },
  {
    name: 'closes-unnoticed',
    dialects: OWN,
    behaviour: 'goes on when its client closes the connection',
    source: 'https://github.com/vllm-project/vllm/issues/54947',
    release: 'vLLM 0.22.0, proxies',
    broomwagon: 'aborts by id too; a request of a killed worker or gateway runs to its end',
    test: TEST,
    server: { missesCloses: true },
  },
];
