import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { REQUEST_FIELDS, SAMPLING_FIELDS } from '@broomwagon/engines';
import { splitPages } from '@broomwagon/state';
import { Gateway } from '../../../../test/system/gateway';
import { ServiceBench } from '../../../../test/system/service-bench';
import { StubEngine } from '../../../../test/system/stub-engine';

// Each field that vLLM or SGLang declares, at each route of the gateway, in front of engines of both: the engine gets
// its value, or the request is refused with its name. None is dropped.

type Body = Record<string, unknown>;
interface Door {
  path: string;
  /** @param marker a number in the prompt by which the engine's call is found */
  buildBody: (marker: number) => Body;
  /** Field of the body that has the sampling parameters. */
  parent?: string;
}

const DOORS: Door[] = [
  { path: '/inference/v1/generate', buildBody: (marker) => ({ token_ids: [1, marker] }), parent: 'sampling_params' },
  { path: '/generate', buildBody: (marker) => ({ input_ids: [1, marker] }), parent: 'sampling_params' },
  { path: '/v1/completions', buildBody: (marker) => ({ prompt: [1, marker] }) },
  { path: '/v1/chat/completions', buildBody: (marker) => ({ messages: [{ role: 'user', content: `${marker}` }] }) },
];
/** Fields that the gateway reads: the prompt, the form of the answer, and the owner of the request. */
// prettier-ignore
const READ = new Set([
  'token_ids', 'input_ids', 'text', 'prompt', 'messages', 'sampling_params', 'stream', 'stream_options', 'user',
  'request_id', 'rid', 'session_id', 'n', 'max_tokens', 'max_new_tokens', 'max_completion_tokens', 'model',
  'logprobs', 'top_logprobs', 'return_logprob', 'top_logprobs_num', 'return_token_ids', 'output_mode',
  'detokenize',
  'return_tokens_as_token_ids', 'return_routed_experts', 'routed_experts_start_len',
]);
/** Fields with no effect on an answer, as documented, so that an engine of the other dialect may ignore them. */
// prettier-ignore
const WITHOUT_EFFECT = new Set([
  'log_metrics', 'no_logs', 'custom_labels', 'routing_key', 'conversation_id', 'external_trace_header',
  'received_time', 'routed_dp_rank', 'data_parallel_rank', 'stream_reasoning', 'return_text_in_logprobs',
  'return_token_offsets', 'return_mm_kwargs',
]);
/** Values of fields that the gateway reads. All other fields have `[{ "a": 1 }]` or false. */
const VALUES: Record<string, unknown> = {
  stop: ['END'],
  stop_token_ids: [9],
  seed: 7,
  sampling_seed: 7,
  tools: [{ type: 'function', function: { name: 'f' } }],
  tool_choice: 'auto',
  response_format: { type: 'json_object' },
  logprob_start_len: 0,
};
const NUMBERS = new Set([
  'temperature',
  'top_p',
  'top_k',
  'min_p',
  'min_tokens',
  'min_new_tokens',
  'repetition_penalty',
]);
/** Synonyms of a field in the two dialects. */
const NAMES: Record<string, string[]> = {
  seed: ['sampling_seed'],
  sampling_seed: ['seed'],
  min_tokens: ['min_new_tokens'],
  min_new_tokens: ['min_tokens'],
  no_stop_trim: ['include_stop_str_in_output'],
  include_stop_str_in_output: ['no_stop_trim'],
  response_format: ['json_schema'],
};
// prettier-ignore
const TRUE_BY_DEFAULT = new Set([
  'add_special_tokens', 'include_reasoning', 'add_generation_prompt', 'separate_reasoning',
  'skip_special_tokens', 'spaces_between_special_tokens', 'parallel_tool_calls',
]);

function getExampleValue(name: string): unknown {
  if (Object.hasOwn(VALUES, name)) return VALUES[name];
  if (NUMBERS.has(name)) return 1;
  if (TRUE_BY_DEFAULT.has(name)) return false;
  return name === 'no_stop_trim' || name === 'include_stop_str_in_output' ? true : [{ a: 1 }];
}

const DECLARED = Object.values(REQUEST_FIELDS).flatMap((routes) => Object.values(routes).flat());
const FIELDS = [...new Set([...DECLARED, 'a_new_field'])].filter((name) => !READ.has(name));
const PARAMETERS = [...new Set([...Object.values(SAMPLING_FIELDS).flat(), 'a_new_field'])].filter(
  (name) => !READ.has(name),
);

const AT_ONCE = 32;
let sent = 1_000_000;

let bench: ServiceBench;
let gateway: Gateway;
let engine: StubEngine;

beforeAll(async () => {
  bench = await ServiceBench.open({}, 2);
});
afterAll(() => bench?.close());
afterEach(async () => {
  await gateway.close();
  engine.close();
  await bench.end();
});

/** Fault in the handling of a field. Undefined: the field was used or passed, or refused with its name. */
async function fault(
  { path, buildBody: bodyOf }: Door,
  name: string,
  field: string,
  more: Body,
): Promise<string | undefined> {
  const marker = (sent += 1);
  const reply = await gateway.post(path, { ...bodyOf(marker), ...more });
  const isOwn = (one: { body: Body }) => JSON.stringify(one.body).includes(String(marker));
  const call = engine.calls.find((one) => isOwn(one) && has(one.body, name, getExampleValue(name)));
  if (call !== undefined) return reply.status === 200 ? undefined : `${path} ${field}: answered ${reply.status}`;
  const { param, message = '' } = (reply.body.error ?? {}) as { param?: string; message?: string };
  if (reply.status >= 400 && reply.status < 500 && (param === field || message.includes(name))) return undefined;
  return WITHOUT_EFFECT.has(name) ? undefined : `${path} ${field}: lost, answered ${reply.status}`;
}

function has(body: unknown, name: string, value: unknown): boolean {
  if (typeof body !== 'object' || body === null) return false;
  return Object.entries(body).some(
    ([key, one]) =>
      (key === name && JSON.stringify(one) === JSON.stringify(value)) ||
      (NAMES[name]?.includes(key) ?? false) ||
      has(one, name, value),
  );
}

it.each(['vllm', 'sglang'] as const)('no field is dropped on the way to %s', async (dialect) => {
  await bench.begin(() => 1, 1, dialect);
  engine = await StubEngine.start(dialect);
  // An engine with salts gets the salt of the caller behind the salt of its lease.
  const capabilities = { cacheSalt: false };
  await bench.register({ serverId: 'stub', instanceId: 'i', endpoint: engine.url, dialect, model: 'm', capabilities });
  gateway = await Gateway.start(bench.prefix, bench.pool, { maxEngineFailures: 1, engineFailurePauseMs: 1 });
  const checks = DOORS.flatMap((door) => [
    ...FIELDS.map((name) => () => fault(door, name, name, { [name]: getExampleValue(name) })),
    ...(door.parent === undefined ? [] : PARAMETERS).map((name) => () => {
      const { parent } = door;
      return fault(door, name, `${parent}.${name}`, { [parent!]: { [name]: getExampleValue(name) } });
    }),
  ]);
  expect(checks.length).toBeGreaterThan(400);
  const faults: (string | undefined)[] = [];
  for (const page of splitPages(checks, AT_ONCE)) faults.push(...(await Promise.all(page.map((check) => check()))));
  expect(faults.filter((one) => one !== undefined)).toEqual([]);
});
