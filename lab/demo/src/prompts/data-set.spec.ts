import { describe, expect, it } from 'vitest';
import { readPrompts } from '../../../reference-trainer/src/prompts/prompt-reader';
import { selectDataSet, EXAMPLE_PROMPTS, checkPromptKinds } from './data-set';
import type { FleetEngine } from '../../../reference-trainer/src/fleet/fleet';

describe('choosing the data set', () => {
  const prompts = Array.from({ length: 100 }, (_, line) => ({ id: `p${line}`, line, prompt: { text: 'x' } }));
  it('takes the first steps x groups, or all', () => {
    expect(selectDataSet(prompts, { steps: 3, groups: 8 })).toEqual(prompts.slice(0, 24));
    expect(selectDataSet(prompts, { steps: 'all', groups: 8 })).toHaveLength(100);
    expect(selectDataSet(prompts, { steps: undefined, groups: 50 })).toHaveLength(100);
    expect(selectDataSet(prompts, { steps: 13, groups: 8 })).toHaveLength(100);
  });
  it('refuses more groups than prompts, and more steps than the prompts are enough for', () => {
    expect(() => selectDataSet(prompts, { steps: 'all', groups: 101 })).toThrow(/more groups than prompts.*101.*100/);
    expect(() => selectDataSet(prompts, { steps: 14, groups: 8 })).toThrow(/more steps than prompts.*13 steps/);
  });
  it('reads the example prompts', async () => {
    const records = await readPrompts(EXAMPLE_PROMPTS);
    expect(records.length).toBeGreaterThanOrEqual(300);
    expect(new Set(records.map(({ domain }) => domain)).size).toBe(2);
  });
});

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
