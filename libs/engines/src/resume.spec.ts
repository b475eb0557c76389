import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { GenerationRequest } from './engine-adapter';
import { engineRequestId } from './engine-request-id';
import { planAttempt } from './resume';

function request(more: Partial<GenerationRequest>): GenerationRequest {
  return { engineRequestId: engineRequestId('r', '1'), prompt: { text: 'p' }, maxTokens: 10, ...more };
}

describe('resume arithmetic', () => {
  it('joins prompt and made tokens to the new prompt, and gives it the rest of the budget', () => {
    const ids = fc.array(fc.nat(), { maxLength: 50 });
    fc.assert(
      fc.property(ids, ids, fc.integer({ min: 1, max: 60 }), (promptTokenIds, tokenIds, maxTokens) => {
        const plan = planAttempt(request({ prompt: { promptTokenIds }, made: { tokenIds }, maxTokens }));
        if (plan.kind === 'exhausted') {
          expect(tokenIds.length).toBeGreaterThanOrEqual(maxTokens);
          return;
        }
        expect(plan.prompt).toEqual({ tokenIds: [...promptTokenIds, ...tokenIds] });
        expect(plan.budget + tokenIds.length).toBe(maxTokens);
        expect(plan.budget).toBeGreaterThan(0);
        expect(plan.resumedBy).toBe(tokenIds.length === 0 ? undefined : 'tokens');
      }),
    );
  });

  it('continues text by text and messages by an unfinished assistant message', () => {
    const made = { text: ' so', tokenCount: 2 };
    expect(planAttempt(request({ made }))).toMatchObject({ prompt: { text: 'p so' }, budget: 8, resumedBy: 'text' });
    const messages = [{ role: 'user', content: 'hi' }];
    expect(planAttempt(request({ prompt: { messages }, made }))).toMatchObject({
      prompt: { messages: [...messages, { role: 'assistant', content: ' so' }], continued: true },
      resumedBy: 'text',
    });
  });

  it('subtracts made tokens from minTokens', () => {
    const plan = planAttempt(request({ made: { text: 'x', tokenCount: 4 }, sampling: { minTokens: 6 } }));
    expect(plan).toMatchObject({ minTokens: 2 });
  });

  it.each([
    [{ prompt: {} }, 'prompt'],
    [{ prompt: { text: 'a', promptTokenIds: [1] } }, 'prompt'],
    [{ prompt: { promptTokenIds: [1] }, made: { text: 'a', tokenCount: 1 } }, 'made'],
    [{ prompt: { text: 'a' }, made: { tokenIds: [1] } }, 'made'],
  ])('refuses %j', (more, field) => {
    expect(() => planAttempt(request(more))).toThrowError(expect.objectContaining({ code: 'ENGINE_REJECTED', field }));
  });

  it('gives every attempt an id of one length, so none is a prefix of another', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.tuple(fc.string(), fc.nat().map(String)), { selector: String }), (attempts) => {
        const ids = attempts.map(([requestId, attempt]) => engineRequestId(requestId, attempt));
        expect(new Set(ids).size).toBe(ids.length);
        expect(ids.every((id) => /^[0-9a-f]{32}$/.test(id))).toBe(true);
      }),
    );
  });
});
