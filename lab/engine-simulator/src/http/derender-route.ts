import type { FinishReason } from '../engine/simulated-engine.types';
import type { SampleIdentities } from '../tokens/sample-identity';
import { RefusedError, sendJson } from './answers';
import { findToolName } from './generate-call';
import { readObject } from './request-body';
import type { Route } from './route';

interface Body {
  generate_response?: { choices?: { token_ids?: number[]; finish_reason?: FinishReason }[] };
  chat_request?: Record<string, unknown>;
}

/**
 * `/v1/chat/completions/derender` of vLLM: parses token ids into a chat message. As in vLLM, tool calls get new ids,
 * the finish reason comes from the body, and an incomplete tool call is content.
 * @param reasoningTokens number of tokens at the start of a message that are its reasoning
 */
export function derenderRoute(identities: SampleIdentities, reasoningTokens: number): Route {
  return async (request, response) => {
    const { generate_response: generated, chat_request: chat = {} } = (await readObject(request)) as Body;
    const [{ token_ids: ids = [], finish_reason: reason } = {}] = generated?.choices ?? [];
    if (ids.length === 0) throw new RefusedError(400, 'choice 0 has empty or null token_ids');
    const tool = reason === 'stop' ? findToolName(chat) : undefined;
    const args = JSON.stringify({ text: identities.detokenize(ids) });
    const call = { id: `parsed-${ids.length}`, type: 'function', function: { name: tool, arguments: args } };
    const thought = tool === undefined ? ids.slice(0, reasoningTokens) : [];
    const message = {
      role: 'assistant',
      reasoning: thought.length === 0 ? null : identities.detokenize(thought),
      content: tool === undefined ? identities.detokenize(ids.slice(thought.length)) : null,
      tool_calls: tool === undefined ? [] : [call],
    };
    sendJson(response, 200, { object: 'chat.completion', choices: [{ index: 0, message, finish_reason: reason }] });
  };
}
