import { invalidField } from '@broomwagon/contracts';
import { jsonText, listOfObjects, requiredObject, requiredText, withoutNulls } from '../../fields/read-fields';

type Block = Record<string, unknown>;
type Message = Record<string, unknown>;

const TOOL_CHOICES = new Map<unknown, string>([
  ['auto', 'auto'],
  ['any', 'required'],
  ['none', 'none'],
]);

/**
 * Converts a request of `/v1/messages` to a request of `/v1/chat/completions`.
 * @throws BroomwagonError VALIDATION_FAILED
 */
export function chatOfMessages(body: Record<string, unknown>): Record<string, unknown> {
  const {
    messages,
    system,
    stop_sequences: stop,
    tools,
    tool_choice: toolChoice,
    thinking,
    metadata: _metadata,
    service_tier: _tier,
    ...others
  } = withoutNulls(body);
  if (!Array.isArray(messages)) throw invalidField('messages', 'must be a list');
  return {
    ...others,
    messages: [
      ...parseSystem(system),
      ...messages.flatMap((message, index) => parseMessages(message, `messages.${index}`)),
    ],
    n: 1,
    ...(stop !== undefined && { stop }),
    ...(tools !== undefined && { tools: listOfObjects(tools, 'tools').map(parseTool) }),
    ...(toolChoice !== undefined && parseToolChoice(toolChoice)),
    ...(thinking !== undefined && parseThinking(requiredObject(thinking, 'thinking'))),
  };
}

function parseSystem(system: unknown): Message[] {
  if (system === undefined) return [];
  return [{ role: 'system', content: parseText(system, 'system') }];
}

function parseMessages(given: unknown, field: string): Message[] {
  const { role, content } = requiredObject(given, field);
  if (role !== 'user' && role !== 'assistant') throw invalidField(`${field}.role`, 'must be user or assistant');
  if (typeof content === 'string') return [{ role, content }];
  const blocks = listOfObjects(content, `${field}.content`);
  if (role === 'assistant') return [parseAssistant(blocks, `${field}.content`)];
  const results: Message[] = [];
  const parts: Block[] = [];
  for (const [index, block] of blocks.entries()) {
    const at = `${field}.content.${index}`;
    if (block.type === 'tool_result') {
      const text = block.content === undefined ? '' : parseText(block.content, `${at}.content`);
      results.push({ role: 'tool', tool_call_id: block.tool_use_id, content: text });
    } else if (block.type === 'text') parts.push({ type: 'text', text: requiredText(block.text, `${at}.text`) });
    else if (block.type === 'image') parts.push({ type: 'image_url', image_url: { url: parseImageUrl(block, at) } });
    else throw invalidField(at, `blocks of the type ${JSON.stringify(block.type)} are not supported`);
  }
  return parts.length === 0 ? results : [...results, { role, content: parts }];
}

function parseAssistant(blocks: Block[], field: string): Message {
  const texts: string[] = [];
  const reasoning: string[] = [];
  const calls: object[] = [];
  for (const [index, block] of blocks.entries()) {
    const at = `${field}.${index}`;
    if (block.type === 'text') texts.push(requiredText(block.text, `${at}.text`));
    else if (block.type === 'thinking') reasoning.push(requiredText(block.thinking, `${at}.thinking`));
    else if (block.type === 'tool_use') {
      const called = { name: block.name, arguments: jsonText(block.input ?? {}, `${at}.input`) };
      calls.push({ id: block.id, type: 'function', function: called });
    } else if (block.type !== 'redacted_thinking') {
      throw invalidField(at, `blocks of the type ${JSON.stringify(block.type)} are not supported`);
    }
  }
  return {
    role: 'assistant',
    content: texts.length === 0 && calls.length > 0 ? null : texts.join(''),
    ...(reasoning.length > 0 && { reasoning: reasoning.join('') }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

/** A text, or the texts of blocks. */
function parseText(content: unknown, field: string): string {
  if (typeof content === 'string') return content;
  const texts = listOfObjects(content, field).map((block, index) => {
    if (block.type === 'text' && typeof block.text === 'string') return block.text;
    throw invalidField(`${field}.${index}`, 'must be a block of text');
  });
  return texts.join('\n');
}

function parseImageUrl({ source }: Block, field: string): string {
  const { type, media_type: mediaType, data, url } = requiredObject(source, `${field}.source`);
  const text = (value: unknown, name: string) => requiredText(value, `${field}.source.${name}`);
  if (type === 'base64') return `data:${text(mediaType, 'media_type')};base64,${text(data, 'data')}`;
  if (type === 'url') return text(url, 'url');
  throw invalidField(`${field}.source`, 'must be base64 or a URL');
}

function parseTool(tool: Block, index: number): object {
  const { type, name, description, input_schema: parameters } = tool;
  if (type !== undefined && type !== 'custom')
    throw invalidField(`tools.${index}.type`, 'only custom tools are supported');
  return { type: 'function', function: { name, ...(description !== undefined && { description }), parameters } };
}

function parseToolChoice(choice: unknown): object {
  const { type, name, disable_parallel_tool_use: isSingle } = requiredObject(choice, 'tool_choice');
  const named = type === 'tool' ? { type: 'function', function: { name } } : TOOL_CHOICES.get(type);
  if (named === undefined) throw invalidField('tool_choice', 'must have the type auto, any, tool or none');
  return { tool_choice: named, ...(isSingle === true && { parallel_tool_calls: false }) };
}

/** Fields for the thinking of the model, as vLLM reads them. */
function parseThinking({ type, budget_tokens: budget }: Block): object {
  if (type === 'disabled') return { reasoning_effort: 'none' };
  return budget === undefined ? {} : { thinking_token_budget: budget };
}
