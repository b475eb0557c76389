import { abortEnd, leaveOut, repeatAll } from '../stages/abort-end';
import { endsAfter } from '../stages/ends-after';
import { halfCharacters } from '../stages/half-characters';
import { stopText } from '../stages/stop-text';
import { streamInterval } from '../stages/stream-interval';
import type { ZooEntry } from '../zoo-entry';

/** Tokens in a chunk of an engine with the behaviour `stream-interval`. */
export const INTERVAL = 5;
const TEST = 'lab/engine-simulator/src/zoo/zoo-streams.spec.ts';

/** Behaviours with texts and ids that arrive separately. Stop texts are matched in the text of whole characters. */
export const TEXT_ENTRIES: readonly ZooEntry[] = [
  {
    name: 'vllm-half-characters',
    dialects: ['vllm'],
    behaviour: 'holds back a character whose bytes are not complete, while its first id is sent',
    source: 'vllm/transformers_utils/detokenizer_utils.py (`detokenize_incrementally`)',
    release: 'vLLM from 0.7',
    broomwagon: 'a segment ends before an id without text; the call that continues it adds text that is missing',
    test: TEST,
    endsWithinCharacters: true,
    stage: halfCharacters(false),
  },
  {
    name: 'sglang-half-characters',
    dialects: ['sglang'],
    behaviour: 'sends the text of such a character up to its last space, with the first id',
    source: 'sglang/srt/managers/detokenizer_manager.py (`find_printable_text`)',
    release: 'SGLang 0.5.9, 0.5.16',
    broomwagon: 'a segment ends before an id whose text ends with a space; the call that continues it adds text',
    test: TEST,
    endsWithinCharacters: true,
    stage: halfCharacters(true),
  },
  {
    name: 'vllm-stop-withheld',
    dialects: ['vllm'],
    behaviour: 'holds back the last characters of the text that may begin a stop text, while their ids are sent',
    source: 'vllm/v1/engine/detokenizer.py (`stop_buffer_length`), https://github.com/vllm-project/vllm/issues/51641',
    release: 'vLLM from 0.7, also in August 2026',
    broomwagon: 'asks for the stop text and cuts it from the text itself',
    test: TEST,
    isAboutStops: true,
    stage: stopText({ withholds: true }),
  },
  {
    name: 'stop-never-included',
    dialects: ['vllm'],
    behaviour: 'holds back text that may begin a stop text, although it was asked to send stop texts',
    source: 'servers with the routes of vLLM that do not read `include_stop_str_in_output`',
    release: 'none known',
    broomwagon: 'at a cut takes the missing text from `/detokenize`, or counts it (`texts_unchecked_total`)',
    test: TEST,
    isAboutStops: true,
    isAlone: true,
    prepare: (call) => {
      call.keepsStop = false;
    },
    stage: stopText({ withholds: true }),
  },
  {
    name: 'sglang-stop-trimmed-at-end',
    dialects: ['sglang'],
    behaviour: 'sends the beginning of a stop text, and a last chunk whose whole text lacks it',
    source: 'sglang/srt/managers/detokenizer_manager.py (`trim_matched_stop`)',
    release: 'SGLang up to 0.5.9; 0.5.18 holds it back (https://github.com/ai-dynamo/dynamo/pull/14317)',
    broomwagon: 'cuts the stop text that the engine reports as matched',
    test: TEST,
    isAboutStops: true,
    stage: stopText({ withholds: false }),
  },
  {
    name: 'sglang-waiting-abort',
    dialects: ['sglang'],
    behaviour: 'ends a waiting request with a chunk of all text, all counts and the last id alone',
    source: 'sglang/srt/managers/tokenizer_manager.py (`_handle_abort_req`)',
    release: 'SGLang from 0.5.10',
    broomwagon: 'reads texts and ids apart; tokens without ids are dropped with their text, and reported',
    test: TEST,
    failure: 'aborted',
    stage: endsAfter(({ call }, { chunk }) => {
      const abort = chunk.empty();
      abort.isWaitingAbort = true;
      abort.end('abort');
      if (call.form !== 'sglang') return [{ kind: 'chunk', chunk: abort }, { kind: 'done' }, { kind: 'end' }];
      abort.meta.finish_reason = { type: 'abort', message: 'Abort in waiting queue' };
      abort.meta.completion_tokens -= chunk.tokenCount;
      delete abort.meta.prompt_tokens;
      delete abort.meta.cached_tokens;
      return [{ kind: 'chunk', chunk: abort }, { kind: 'done' }, { kind: 'end' }];
    }),
  },
  {
    name: 'stream-interval',
    dialects: ['vllm', 'sglang', 'openai'],
    behaviour: 'sends one chunk for several tokens',
    source: 'https://github.com/vllm-project/vllm/pull/27869 (`--stream-interval`)',
    release: 'vLLM 0.11.1; SGLang `--stream-interval`',
    broomwagon: 'takes any number of tokens in a chunk',
    test: TEST,
    stage: streamInterval(INTERVAL),
  },
  {
    name: 'abort-repeats',
    dialects: ['vllm', 'sglang', 'openai'],
    behaviour: 'ends an aborted request with a chunk of all tokens and all text so far',
    source: 'https://github.com/sgl-project/sglang/issues/40901 (chats with `--incremental-streaming-output`)',
    release: 'SGLang of September 2026',
    broomwagon: 'takes no token twice; unsent tokens that cannot be told apart are generated again, and counted',
    test: TEST,
    stage: abortEnd(repeatAll),
  },
  {
    name: 'abort-without-tokens',
    dialects: ['vllm', 'sglang', 'openai'],
    behaviour: 'ends an aborted request without the tokens that it has not sent',
    source: 'https://github.com/vllm-project/vllm/pull/22283 (before: no output after an abort)',
    release: 'vLLM before 0.10.1',
    broomwagon: 'the tokens are generated again, and counted',
    test: TEST,
    stage: abortEnd(leaveOut),
  },
  {
    name: 'abort-closes',
    dialects: ['vllm', 'sglang', 'openai'],
    behaviour: 'closes the connection of a request that is aborted by its id',
    source: 'proxies, engines that are shut down',
    release: 'any',
    broomwagon:
      'the tokens before it are kept; what was not sent is generated again, and counted by the pace of the stream',
    test: TEST,
    stage: abortEnd(() => [{ kind: 'close' }]),
  },
  {
    name: 'whole-at-once',
    dialects: ['vllm', 'sglang', 'openai'],
    behaviour: 'sends the whole response in one chunk',
    source:
      'https://nginx.org/en/docs/http/ngx_http_proxy_module.html#proxy_buffering, servers that only claim to stream',
    release: 'any',
    broomwagon: 'takes any number of tokens in a chunk; what is cut before the chunk is generated again',
    test: TEST,
    stage: streamInterval(Infinity, false),
  },
  {
    name: 'sglang-whole',
    dialects: ['sglang'],
    behaviour: 'repeats all text and all ids in each chunk',
    source: 'sglang/srt/managers/tokenizer_manager.py',
    release: 'SGLang, default',
    broomwagon: 'takes what a chunk adds',
    test: TEST,
    form: { text: 'whole', ids: 'whole' },
  },
  {
    name: 'sglang-whole-text-new-ids',
    dialects: ['sglang'],
    behaviour: 'repeats all text in each chunk, beside the new ids alone',
    source:
      'sglang/srt/managers/tokenizer_manager.py (`stream_output`), https://github.com/sgl-project/sglang/pull/21037',
    release: 'SGLang 0.5.3; with `--stream-output` until March 2026 (0.5.9)',
    broomwagon: 'reads texts and ids apart',
    test: TEST,
    form: { text: 'whole', ids: 'new' },
  },
  {
    name: 'sglang-new',
    dialects: ['sglang'],
    behaviour: 'sends new text and new ids alone',
    source:
      'https://github.com/sgl-project/sglang/pull/21037, https://github.com/sgl-project/sglang/pull/21583 (log probabilities)',
    release: 'SGLang from 0.5.10 with `--incremental-streaming-output`',
    broomwagon: 'takes chunks as they are',
    test: TEST,
    form: { text: 'new', ids: 'new' },
  },
];
