import { BroomwagonError } from '@broomwagon/contracts';
import type { EngineAdapter } from '@broomwagon/engines';
import { MovableCall } from '@broomwagon/generation';
import { expect, it, vi } from 'vitest';
import { buildContinuation, isCuttable, isMovable, parseAtEnd } from './continuation';
import { Generation } from './generation';
import { INPUT } from './generation.fixture';
import type { GenerationInput } from './generation-input';

const input: GenerationInput = { ...INPUT, prompt: { messages: [{ role: 'user', content: 'a' }] } };

/** A chat with one token. */
function chat(delta: object, more: Partial<GenerationInput> = {}): Generation {
  const generation = new Generation('id', 'key', { ...input, ...more });
  generation.report.takePromptIds([1, 2]);
  generation.tokens.take({ text: 'x', tokenIds: [5], tokenCount: 1, choice: { delta: { ...delta } } });
  return generation;
}

it.each([
  ['content', chat({ content: 'x' }), 'exact', true],
  ['reasoning', chat({ reasoning: 'x' }), 'parsed-at-end', false],
  ['content with tools', chat({ content: 'x' }, { hasTools: true }), 'parsed-at-end', false],
  ['reasoning with a stop text', chat({ reasoning: 'x' }, { sampling: { stop: ['s'] } }), undefined, false],
  ['content that is guided', chat({ content: 'x' }, { isContinued: false }), undefined, false],
  ['nothing, guided', new Generation('id', 'key', { ...input, isContinued: false }), undefined, true],
])('a chat with %s', (_, generation, continuation, movable) => {
  expect([buildContinuation(generation), isMovable(generation)]).toEqual([continuation, movable]);
  const call = new MovableCall({ workerId: 'w', workerEpoch: 'e' }, {});
  call.isMovable = () => isMovable(generation);
  const target = { targetServerId: 's', targetEpoch: 'e' };
  for (const one of [call, call.again(false)]) {
    expect([one.move('plan', target), one.signal.aborted]).toEqual([movable, movable]);
  }
});

it('a call that would lose its tokens is not cut for new weights, for 30 s at most', () => {
  const now = vi.spyOn(performance, 'now').mockReturnValue(0);
  const buildCall = (generation: Generation) => {
    const call = new MovableCall({ workerId: 'w', workerEpoch: 'e' }, {});
    call.isCuttable = () => isCuttable(generation);
    return call;
  };
  const parsed = buildCall(chat({ reasoning: 'x' }));
  expect([parsed.cut(), parsed.cause]).toEqual([true, 'cut']);
  const call = buildCall(chat({ content: 'x' }, { isContinued: false }));
  expect([call.cut(), call.isStopped]).toEqual([false, false]);
  now.mockReturnValue(29_999);
  expect(call.again(true).cut()).toBe(false);
  now.mockReturnValue(30_000);
  expect([call.again(false).cut(), call.cut(), call.cause]).toEqual([true, true, 'cut']);
  now.mockRestore();
});

it.each([
  ['abort', false, 1],
  ['abort', true, 1],
  ['stop', false, 0],
] as const)('a chat that ends with %s and is not parsed; sent: %s; has %i tokens', async (reason, isSent, count) => {
  const generation = chat({ content: 'x' }, { hasTools: true });
  generation.tokens.message!.isParsedAtEnd = true;
  if (isSent) generation.markSent();
  const error = new BroomwagonError('ENGINE_ERROR', 'no parser');
  const engine = { parseChat: () => Promise.reject(error) } as unknown as EngineAdapter;
  const end = reason === 'abort' ? { reason, message: 'Aborted by the client' } : { reason };
  expect(await parseAtEnd(generation, engine, end)).toEqual({ end: reason === 'abort' ? end : undefined, error });
  expect([generation.tokens.count, generation.tokens.text]).toEqual([count, 'x'.repeat(count)]);
});
