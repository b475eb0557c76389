import type { EngineDialect } from '@broomwagon/contracts';
import { describe, expect, it } from 'vitest';
import { selectZoo } from '../../../../lab/engine-simulator/src/test-engine';
import { ZOO } from '../../../../lab/engine-simulator/src/zoo/zoo';
import { parseEvents, type Gateway } from '../../../../test/system/gateway';
import { useGateway } from '../../../../test/system/gateway-bench';

/** Behaviours that change only responses with tool calls. */
const ENTRIES = ZOO.filter(({ isAboutTools }) => isAboutTools).map(({ name }) => name);
/** Behaviours by which the first call fails; undefined: it does not fail. */
const FAILURES = [undefined, 'error-event', 'ends-midway', 'cut-at-byte'];
const CUT_AT = { tokens: 7, bytes: 900 };

interface ToolCall {
  index?: number;
  id?: string;
  function: { name?: string; arguments: string };
}

interface Choice {
  message: { tool_calls: ToolCall[] };
  delta: { tool_calls?: ToolCall[] };
  finish_reason: string | null;
}

/** Names and arguments of the calls of a chat, and its finish reasons. */
async function ask(gateway: Gateway, stream: boolean): Promise<{ calls: string[][]; reasons: string[] }> {
  const { status, body } = await gateway.post('/v1/chat/completions', {
    model: 'simulated',
    messages: [{ role: 'user', content: 'tools' }],
    tools: [{ type: 'function', function: { name: 'search', parameters: { type: 'object' } } }],
    seed: 3,
    stream,
  });
  expect(status, JSON.stringify(body)).toBe(200);
  const parts: unknown[] = stream ? parseEvents(body as unknown as string) : [body];
  const choices = parts.flatMap((part) => (part as { choices: Choice[] } | null)?.choices ?? []);
  const calls: ToolCall[] = [];
  for (const { message, delta } of choices) {
    for (const piece of (message ?? delta).tool_calls ?? []) {
      // A client puts pieces together by their index.
      const call = stream ? calls.find(({ index }) => index === piece.index) : undefined;
      if (call === undefined) calls.push({ ...piece, function: { ...piece.function } });
      else call.function.arguments += piece.function.arguments;
    }
  }
  return {
    calls: calls.map((call) => [call.function.name!, call.function.arguments]),
    reasons: choices.flatMap(({ finish_reason: reason }) => reason ?? []),
  };
}

describe.each<EngineDialect>(['vllm', 'openai'])('%s', (dialect) => {
  const system = useGateway(2 * ENTRIES.length, {
    dialect,
    tokens: 24,
    speed: 100,
    engine: { streamMs: 0 },
    gateway: { engineFailurePauseMs: 1 },
  });

  it.each(ENTRIES.flatMap((name) => [false, true].map((stream) => ({ name, stream }))))(
    '$name leaves each tool call whole, streamed: $stream',
    async ({ name, stream }) => {
      const { url } = system.bench.engine;
      const truth = await ask(system.gateway, false);
      const added = name.startsWith('tool-index') ? [['added', '{"added":1}']] : [];
      const expected = { calls: [...added, ...truth.calls], reasons: ['tool_calls'] };
      // Parts that a client has cannot be generated again: such a stream ends with an error.
      for (const failure of stream ? [undefined] : FAILURES) {
        const entries = failure === undefined ? [name] : [name, failure];
        const at = failure === 'cut-at-byte' ? CUT_AT.bytes : CUT_AT.tokens;
        await selectZoo(url, { entries, at, count: 1, later: [name] });
        expect(await ask(system.gateway, stream), failure).toEqual(expected);
      }
    },
  );
});
