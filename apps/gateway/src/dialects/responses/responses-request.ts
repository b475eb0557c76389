import { invalidField } from '@broomwagon/contracts';
import { isSet, listOfObjects, requiredObject, requiredText, withoutNulls } from '../../fields/read-fields';

type Item = Record<string, unknown>;
type Message = Record<string, unknown>;

/** Refused fields: they need stored responses, tools of the server, or values that the gateway does not write. */
const REFUSED = ['previous_response_id', 'conversation', 'prompt', 'background', 'top_logprobs', 'include'];
/** Dropped fields: they have no meaning for an engine; nothing is stored. */
const DROPPED = new Set(['store', 'metadata', 'truncation', 'service_tier', 'safety_identifier', 'prompt_cache_key']);
const ROLES = new Set<unknown>(['user', 'assistant', 'system', 'developer']);

/**
 * Converts a request of `/v1/responses` to a request of `/v1/chat/completions`.
 * @throws BroomwagonError VALIDATION_FAILED
 */
export function chatOfResponses(body: Record<string, unknown>): Record<string, unknown> {
  const {
    input,
    instructions,
    max_output_tokens: maxTokens,
    tools,
    tool_choice: toolChoice,
    text,
    reasoning,
    ...others
  } = withoutNulls(body);
  // Clients request encrypted reasoning to send it back later: the gateway returns none.
  const { include, ...checked } = others;
  const isOnlyReasoning = Array.isArray(include) && include.every((one) => one === 'reasoning.encrypted_content');
  for (const name of REFUSED) {
    const value = name === 'include' ? !isOnlyReasoning && include : checked[name];
    if (isSet(value)) throw invalidField(name, 'is not supported');
  }
  const rest = Object.fromEntries(Object.entries(checked).filter(([name]) => !DROPPED.has(name)));
  const { format } = text === undefined ? {} : requiredObject(text, 'text');
  const { effort } = reasoning === undefined ? {} : requiredObject(reasoning, 'reasoning');
  return {
    ...rest,
    messages: [...parseInstructions(instructions), ...parseMessages(input)],
    n: 1,
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
    ...(tools !== undefined && { tools: listOfObjects(tools, 'tools').map(parseTool) }),
    ...(toolChoice !== undefined && { tool_choice: parseToolChoice(toolChoice) }),
    ...(format !== undefined && parseFormat(requiredObject(format, 'text.format'))),
    ...(effort !== undefined && effort !== null && { reasoning_effort: effort }),
  };
}

function parseInstructions(instructions: unknown): Message[] {
  if (instructions === undefined) return [];
  if (typeof instructions !== 'string') throw invalidField('instructions', 'must be a text');
  return [{ role: 'system', content: instructions }];
}

function parseMessages(input: unknown): Message[] {
  if (typeof input === 'string') return [{ role: 'user', content: input }];
  const messages: Message[] = [];
  // Reasoning, text and tool calls of one turn are separate items here, and one message of a chat.
  let turn: Message | undefined;
  const assistant = (): Message => {
    if (turn === undefined) messages.push((turn = { role: 'assistant', content: null }));
    return turn;
  };
  for (const [index, item] of listOfObjects(input, 'input').entries()) {
    const at = `input.${index}`;
    const { type = 'message', role } = item;
    if (type === 'reasoning') assistant().reasoning = parseReasoning(item, at);
    else if (type === 'function_call') {
      const call = { id: item.call_id, type: 'function', function: { name: item.name, arguments: item.arguments } };
      const message = assistant();
      message.tool_calls = [...((message.tool_calls as object[] | undefined) ?? []), call];
    } else if (type === 'message' && role === 'assistant') {
      const message = assistant();
      message.content = `${(message.content as string | null) ?? ''}${parseText(item.content, `${at}.content`)}`;
    } else {
      turn = undefined;
      messages.push(type === 'function_call_output' ? parseToolResult(item, at) : parseMessage(item, at));
    }
  }
  return messages;
}

function parseMessage({ type = 'message', role, content }: Item, field: string): Message {
  if (type !== 'message')
    throw invalidField(`${field}.type`, `items of the type ${JSON.stringify(type)} are not supported`);
  if (!ROLES.has(role)) throw invalidField(`${field}.role`, `must be one of ${[...ROLES].join(', ')}`);
  const name = role === 'developer' ? 'system' : role;
  if (typeof content === 'string') return { role: name, content };
  const parts = listOfObjects(content, `${field}.content`).map((part, index) =>
    parsePart(part, `${field}.content.${index}`),
  );
  return { role: name, content: parts };
}

function parsePart({ type, text, image_url: url }: Item, field: string): object {
  if (type === 'input_text' || type === 'output_text')
    return { type: 'text', text: requiredText(text, `${field}.text`) };
  if (type === 'input_image' && typeof url === 'string') return { type: 'image_url', image_url: { url } };
  throw invalidField(field, 'must be input_text, or input_image with a URL');
}

function parseToolResult({ call_id: id, output }: Item, field: string): Message {
  return { role: 'tool', tool_call_id: id, content: parseText(output, `${field}.output`) };
}

function parseReasoning({ content, summary }: Item, field: string): string {
  const given = isSet(content) ? content : (summary ?? []);
  return parseText(given, `${field}.content`);
}

/** A text, or the texts of parts. */
function parseText(content: unknown, field: string): string {
  if (typeof content === 'string') return content;
  return listOfObjects(content, field)
    .map(({ text }, index) => requiredText(text, `${field}.${index}.text`))
    .join('');
}

function parseTool({ type, ...called }: Item, index: number): object {
  if (type !== 'function') throw invalidField(`tools.${index}.type`, 'must be function');
  return { type, function: withoutNulls(called) };
}

function parseToolChoice(choice: unknown): unknown {
  if (typeof choice === 'string') return choice;
  const { type, name } = requiredObject(choice, 'tool_choice');
  if (type !== 'function') throw invalidField('tool_choice.type', 'must be function');
  return { type, function: { name } };
}

function parseFormat({ type, ...schema }: Item): object {
  if (type === 'text') return {};
  return { response_format: { type, ...(type === 'json_schema' && { json_schema: withoutNulls(schema) }) } };
}
