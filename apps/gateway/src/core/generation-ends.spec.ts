import { expect, it } from 'vitest';
import { Generation } from './generation';
import { INPUT } from './generation.fixture';
import { endOfAborts } from './generation-ends';

it('ends a response that engines abort too often with its tokens, and with an error if it has none', () => {
  const abort = { reason: 'abort', message: 'Abort in waiting queue' } as const;
  const generation = new Generation('g', '', INPUT);
  expect(endOfAborts(generation, abort)).toMatchObject({ reason: 'error', error: { code: 'ENGINE_ERROR' } });
  generation.tokens.take({ text: 'a', tokenIds: [1], tokenCount: 1 });
  expect(endOfAborts(generation, abort)).toEqual(abort);
});
