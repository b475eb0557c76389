import { MINUS_INFINITY, type Logprob } from '../chunk';
import { finishBeforeArguments, twoToolCalls } from '../stages/tool-calls';
import type { Stage, ZooEntry } from '../zoo-entry';

const TEST = 'lab/engine-simulator/src/zoo/zoo-streams.spec.ts';
const TOOLS_TEST = 'apps/gateway/src/dialects/zoo-tools.spec.ts';
const ALL = ['vllm', 'sglang', 'openai'] as const;
const OPENAI = ['vllm', 'openai'] as const;
/** Interval between tokens with another log probability. */
const ODD_TOKENS = 3;

/** Replaces the log probability of every third token. */
function someLogprobs(odd: Logprob): Stage {
  return (_context, send) => {
    let seen = 0;
    return (frame) => {
      if (frame.kind === 'chunk') frame.chunk.mapLogprobs((logprob) => (seen++ % ODD_TOKENS === 1 ? odd : logprob));
      send(frame);
    };
  };
}

/** Repeats the chunk with the finish reason, without its tokens. */
const twoFinalChunks: Stage = (_context, send) => (frame) => {
  send(frame);
  if (frame.kind === 'chunk' && frame.chunk.reason !== undefined) send({ kind: 'chunk', chunk: frame.chunk.empty() });
};

/** Behaviours in fields of chunks that engines write in several ways. */
export const FIELD_ENTRIES: readonly ZooEntry[] = [
  {
    name: 'usage-in-each-chunk',
    dialects: OPENAI,
    behaviour: 'counts tokens in each chunk, asked or not',
    source: 'https://github.com/vllm-project/vllm/issues/7262, https://github.com/vllm-project/vllm/pull/37923',
    release: 'vLLM from 0.5.4 if asked, since March 2026 also with `--enable-force-include-usage`',
    broomwagon: 'the last usage counts',
    test: TEST,
    prepare: (call) => {
      call.continuousUsage = true;
      call.usage = true;
    },
  },
  {
    name: 'null-logprobs',
    dialects: ALL,
    behaviour: 'has no log probability for some tokens',
    source: 'sglang/srt/entrypoints/http_server.py (orjson writes NaN and infinities as null)',
    release: 'SGLang 0.4 and 0.5',
    broomwagon: 'null for these tokens alone',
    test: TEST,
    stage: someLogprobs(null),
  },
  {
    name: 'infinite-logprobs',
    dialects: ALL,
    behaviour: 'writes `-Infinity`, which is no JSON',
    source: 'https://github.com/sgl-project/sglang/issues/4097',
    release: 'SGLang of March 2025',
    broomwagon: 'null for these tokens alone',
    test: TEST,
    stage: someLogprobs(MINUS_INFINITY),
  },
  {
    name: 'tool-index-repeated',
    dialects: OPENAI,
    behaviour: 'gives two tool calls the index 0',
    source: 'https://github.com/ollama/ollama/issues/15457',
    release: 'Ollama 0.20.2',
    broomwagon: 'another id is another call',
    test: TOOLS_TEST,
    isAboutTools: true,
    stage: twoToolCalls(() => 0),
  },
  {
    name: 'tool-index-missing',
    dialects: OPENAI,
    behaviour: 'gives tool calls no index',
    source: 'https://github.com/ollama/ollama/issues/7881',
    release: 'Ollama up to 0.4.6',
    broomwagon: 'another id is another call; a piece without an id belongs to the last call',
    test: TOOLS_TEST,
    isAboutTools: true,
    stage: twoToolCalls(() => undefined),
  },
  {
    name: 'tool-index-null',
    dialects: OPENAI,
    behaviour: 'gives tool calls the index `null`',
    source: 'https://github.com/openai/openai-python/issues/2806',
    release: 'Gemini, by its OpenAI-compatible route',
    broomwagon: 'another id is another call; a piece without an id belongs to the last call',
    test: TOOLS_TEST,
    isAboutTools: true,
    stage: twoToolCalls(() => null),
  },
  {
    name: 'tool-index-late',
    dialects: OPENAI,
    behaviour: 'gives a tool call its index after its first piece',
    source: 'https://github.com/openai/openai-python/pull/3246',
    release: 'Gemini, by its OpenAI-compatible route',
    broomwagon: 'another id is another call',
    test: TOOLS_TEST,
    isAboutTools: true,
    stage: twoToolCalls((call, piece) => (call === 1 && piece > 0 ? 1 : undefined)),
  },
  {
    name: 'finish-before-arguments',
    dialects: OPENAI,
    behaviour: 'sends the finish reason before the last arguments of a tool call',
    source: 'https://github.com/ai-dynamo/dynamo/pull/4154 (several finish reasons in a stream)',
    release: 'NVIDIA Dynamo up to November 2025; no report of such arguments is known',
    broomwagon: 'reads the stream to its end',
    test: TOOLS_TEST,
    isAboutTools: true,
    stage: finishBeforeArguments,
  },
  {
    name: 'two-final-chunks',
    dialects: ALL,
    behaviour: 'sends the finish reason twice',
    source: 'https://github.com/sgl-project/sglang/pull/19895',
    release: 'SGLang 0.5.10, by its gRPC server',
    broomwagon: 'the second adds nothing',
    test: TEST,
    stage: twoFinalChunks,
  },
];
