/** A piece of a message: text of its reasoning or its content, or of the arguments of a tool call. */
export type MessagePart =
  | { kind: 'reasoning' | 'text'; text: string }
  /** Id and name of the tool call; absent after its first piece. */
  | { kind: 'call'; text: string; index: number; id?: string; name?: string };

interface Delta {
  tool_calls?: { index?: number; id?: string; function?: { name?: string; arguments?: string } }[];
  [field: string]: unknown;
}

/** Pieces of a delta, in the order in which models write them. */
export function toMessageParts(delta: Delta): MessagePart[] {
  const parts: MessagePart[] = [];
  for (const name of ['reasoning', 'reasoning_content', 'content']) {
    const text = delta[name];
    if (typeof text === 'string') parts.push({ kind: name === 'content' ? 'text' : 'reasoning', text });
  }
  for (const { index = 0, id, function: called } of delta.tool_calls ?? []) {
    parts.push({ kind: 'call', index, id, name: called?.name, text: called?.arguments ?? '' });
  }
  return parts;
}
