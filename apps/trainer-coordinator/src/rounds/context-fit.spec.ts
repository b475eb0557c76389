import type { GroupSubmission } from '@broomwagon/contracts';
import { describe, expect, it } from 'vitest';
import { fitToContext } from './context-fit';

const CONTEXT_TOKENS = 4_096;
const group = (maxTokens: number, prompt: GroupSubmission['prompt']): GroupSubmission => ({
  groupId: 'g',
  samples: 1,
  maxTokens,
  prompt,
});
const ids = (count: number) => ({ promptTokenIds: Array.from({ length: count }, () => 7) });

describe('a group that is submitted', () => {
  it.each([
    [1_000, 3_000, 3_000],
    [1_000, 3_095, 3_095],
    [1_000, 3_096, 3_095],
    [1_000, 4_096, 3_095],
    [4_094, 4_096, 1],
  ])('with %i prompt tokens and a budget of %i gets the budget %i', (promptTokens, maxTokens, fitting) => {
    expect(fitToContext(group(maxTokens, ids(promptTokens)), CONTEXT_TOKENS, 'groups.0').maxTokens).toBe(fitting);
  });

  it('is refused if its prompt leaves no room, naming the prompt', () => {
    expect(() => fitToContext(group(10, ids(4_095)), CONTEXT_TOKENS, 'groups.3')).toThrow(
      expect.objectContaining({ code: 'CONTEXT_TOO_LONG', field: 'groups.3.prompt' }),
    );
  });

  it('with a text is refused only for a budget that leaves no room for any prompt', () => {
    const text = { text: 'x'.repeat(20_000) };
    expect(fitToContext(group(4_095, text), CONTEXT_TOKENS, 'groups.0').maxTokens).toBe(4_095);
    expect(() => fitToContext(group(4_096, text), CONTEXT_TOKENS, 'groups.3')).toThrow(
      expect.objectContaining({ code: 'CONTEXT_TOO_LONG', field: 'groups.3.maxTokens' }),
    );
    expect(() => fitToContext(group(4_096, undefined), CONTEXT_TOKENS, 'groups.3')).toThrow('never fit');
  });
});
