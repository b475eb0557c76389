import { Readable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { UsageError } from '../usage-error';
import { MAX_PROMPT_BYTES, parsePromptLine, readPromptLines, readPrompts } from './prompt-reader';

const read = (text: string) => readPromptLines(Readable.from([Buffer.from(text)]), 'p.jsonl');

async function readProblem(text: string): Promise<string> {
  const error = await read(text).catch((problem: unknown) => problem);
  expect(error).toBeInstanceOf(UsageError);
  return (error as UsageError).message;
}

describe('reading prompts', () => {
  it('takes the three forms, with and without ids', async () => {
    const records = await read(
      '\uFEFF{"prompt":"one"}\r\n\n{"id":"b","domain":"math","messages":[{"role":"user","content":"two"}],"answer":"2"}\n' +
        '{"promptTokenIds":[1,2,3]}',
    );
    expect(records).toEqual([
      { id: 'line-1', line: 1, prompt: { text: 'one' }, domain: undefined },
      { id: 'b', line: 3, prompt: { messages: [{ role: 'user', content: 'two' }] }, domain: 'math' },
      { id: 'line-4', line: 4, prompt: { promptTokenIds: [1, 2, 3] }, domain: undefined },
    ]);
  });

  it.each([
    ['{"prompt":', /line 1: not JSON/],
    ['[1]', /line 1: not a JSON object/],
    ['"text"', /line 1: not a JSON object/],
    ['null', /line 1: not a JSON object/],
    ['{}', /line 1: neither "prompt" nor "messages" nor "promptTokenIds"/],
    ['{"prompt":"a"}\n{"id":"x"}', /line 2: neither/],
    ['{"prompt":"a","promptTokenIds":[1]}', /line 1: "prompt" and "promptTokenIds": only one/],
    ['{"prompt":"a","promt":"b"}', /line 1: promt: property promt should not exist/],
    ['{"prompt":7}', /line 1: prompt: must be a string/],
    ['{"prompt":""}', /line 1: prompt: the prompt is empty/],
    ['{"prompt":"a","id":5}', /line 1: id: must be a string/],
    ['{"prompt":"a","id":"a\\nb"}', /line 1: id: id must not hold control characters/],
    [`{"prompt":"a","id":"${'x'.repeat(10_240)}"}`, /line 1: id: id must be at most 128 bytes/],
    ['{"prompt":"a","domain":"a b"}', /line 1: domain: domain must/],
    ['{"messages":[]}', /line 1: messages: the prompt is empty/],
    ['{"messages":"hi"}', /line 1: /],
    ['{"messages":[{"role":"user"}]}', /line 1: messages\.0\.content: is missing/],
    ['{"messages":[{"role":"user","content":[]}]}', /line 1: messages\.0\.content: must be a text, a list of parts/],
    ['{"messages":[{"role":"user","content":[{"text":"a"}]}]}', /line 1: messages\.0\.content\.0: must .* type/],
    ['{"prompt":"a","engineFields":{"n":2}}', /line 1: engineFields\.n: is set by Broomwagon/],
    ['{"prompt":"a","engineFields":[]}', /line 1: engineFields: must be an object/],
    ['{"messages":["hi"]}', /line 1: .*messages/],
    ['{"promptTokenIds":[]}', /line 1: promptTokenIds: the prompt is empty/],
    ['{"promptTokenIds":[1.5]}', /line 1: promptTokenIds: must be a list of token ids/],
    ['{"promptTokenIds":[-1]}', /line 1: promptTokenIds: must be a list of token ids/],
    ['{"promptTokenIds":[1e300]}', /line 1: promptTokenIds: must be a list of token ids/],
    ['{"promptTokenIds":"1"}', /line 1: .*promptTokenIds/],
    ['{"prompt":"a","id":"x"}\n\n{"prompt":"b","id":"x"}', /line 3: duplicate id "x", already on line 1/],
    ['{"prompt":"a","id":"line-2"}\n{"prompt":"b"}', /line 2: duplicate id "line-2", already on line 1/],
    ['', /p\.jsonl contains no prompts/],
    ['\n \n', /contains no prompts/],
  ])('refuses %.60s', async (text, message) => {
    expect(await readProblem(text)).toMatch(message);
  });

  it('takes messages as the OpenAI API does', async () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA', detail: 'low' } },
        ],
      },
      { role: 'assistant', content: null, tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look' } }] },
      { role: 'tool', tool_call_id: 'c1', content: 'a cat', name: 'look' },
    ];
    const engineFields = { tools: [{ type: 'function', function: { name: 'look' } }], lora_path: 'a' };
    expect(await read(JSON.stringify({ messages, engineFields }))).toMatchObject([
      { prompt: { messages, engineFields } },
    ]);
  });

  it('takes every character JSON allows in a string, and refuses bytes that are no UTF-8', async () => {
    const text = 'caf\u00e9 \u2028 \u2029 \u{1F680}';
    expect(await read(`${JSON.stringify({ prompt: text })}\n{"prompt":"b"}`)).toMatchObject([
      { id: 'line-1', prompt: { text } },
      { id: 'line-2' },
    ]);
    const latin1 = Readable.from([Buffer.from('{"prompt":"a"}\n{"prompt":"caf\u00e9"}\n', 'latin1')]);
    await expect(readPromptLines(latin1, 'p.jsonl')).rejects.toThrow(/line 2: not UTF-8/);
  });

  it('counts all wrong lines, and describes the first ten', async () => {
    const text = await readProblem('{}\n'.repeat(13));
    expect(text).toMatch(/line 10: neither/);
    expect(text).not.toMatch(/line 11/);
    expect(text).toMatch(/and 3 more/);
  });

  it('refuses a prompt that no payload can hold', () => {
    expect(MAX_PROMPT_BYTES).toBe(64 * 1024 * 1024);
    const line = JSON.stringify({ prompt: 'x'.repeat(1_000) });
    expect(parsePromptLine(line, 4, 1_000)).toEqual([
      expect.stringMatching(/has 1011 bytes, more than the limit of 1000/),
    ]);
  });

  it('names the file that cannot be read', async () => {
    await expect(readPrompts('/no/such/file.jsonl')).rejects.toThrow(/cannot read the prompts: .*\/no\/such\/file/);
  });
});
