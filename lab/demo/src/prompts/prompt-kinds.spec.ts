import { describe, expect, it } from 'vitest';
import type { FleetEngine } from '../../../reference-trainer/src/fleet/fleet';
import { checkPromptKinds } from './prompt-kinds';

const engine = (tokenIdsIn: boolean): FleetEngine => ({
  serverId: 'e',
  endpoint: 'http://127.0.0.1:1',
  dialect: tokenIdsIn ? 'vllm' : 'openai',
  capabilities: { tokenIdsIn },
});
const text = { id: 'a', line: 1, prompt: { text: 'x' } };
const tokens = { id: 'b', line: 2, prompt: { promptTokenIds: [1] } };

describe('checkPromptKinds', () => {
  it('refuses token ids before anything starts when an engine takes text only', () => {
    expect(() => checkPromptKinds([engine(true), engine(false)], [text, tokens])).toThrow(
      /line 2 .*promptTokenIds, and http:\/\/127\.0\.0\.1:1 \(openai\)/,
    );
  });

  it('accepts all other prompts and engines', () => {
    checkPromptKinds([engine(false)], [text]);
    checkPromptKinds([engine(true)], [text, tokens]);
    checkPromptKinds([], [tokens]);
  });
});
