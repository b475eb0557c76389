import { Metrics } from '@broomwagon/platform';
import type { PartialSave, PartialStore } from '@broomwagon/state';
import { beforeEach, expect, it } from 'vitest';
import { GatewayConfig } from '../gateway.config';
import { GatewayMetrics } from '../gateway-metrics';
import { Generation } from './generation';
import { INPUT } from './generation.fixture';
import { joinPieces, type Partial } from './partial-pieces';
import { PartialSaves } from './partial-saves';

/** The first save of each request, and the later saves that continue the first one. */
const saved = new Map<string, string[]>();
/** Called with each save; its error is the answer. */
let onSave: (save: PartialSave) => Error | undefined;
const store = {
  save: async (_: string, saves: readonly PartialSave[]) =>
    saves.map((save) => {
      const error = onSave(save);
      if (error === undefined) {
        const before = save.piece === undefined ? [] : saved.get(save.identity)!;
        saved.set(save.identity, [...before, save.partial]);
      }
      return error;
    }),
} as unknown as PartialStore;
beforeEach(() => {
  saved.clear();
  onSave = () => undefined;
});
/** The saved response that a replica gets with its claim. */
const claimed = (identity = 't\nr') => {
  const [first, ...pieces] = (saved.get(identity) ?? []).map((text) => JSON.parse(text) as { tokenIds: number[] });
  return { saved: first, pieces };
};
const joinedIds = (identity: string) => {
  const { saved: first, pieces } = claimed(identity);
  return joinPieces(first as unknown as Partial, pieces as unknown as Partial[]).tokenIds;
};
const config = Object.assign(new GatewayConfig(), { partialSaveIntervalMs: 1 });
const saves = () => new PartialSaves(store, new GatewayMetrics(new Metrics('gateway')), config);
const restored = () => ({ tokenIds: [5, 6], text: 'ab', spans: [], isVersionReported: true });
const generation = (key = 'r') => new Generation('r', 't', INPUT, { kind: 'id', key, digest: 'd' });

it.each([true, false])('restores whether the engine has reported the weights: %s', async (isReported) => {
  const [first, second] = [generation(), generation()];
  const [before, after] = [saves(), saves()];
  before.begin(first, {});
  first.restore(restored());
  const engineFields = isReported ? { weight_version: '3' } : {};
  first.report.takeResult({ engineFields }, { start: 0, end: 2, weightVersion: 3 });
  expect(await before.keep(first)).toBe(true);
  after.begin(second, claimed());
  expect([second.tokens.allIds, second.report.spans]).toEqual([[5, 6], [{ version: '3', start: 0, end: 2 }]]);
  expect(second.report.isVersionReported).toBe(isReported);
});

it('restores a chat that has ended, also without token ids', async () => {
  const input = { ...INPUT, prompt: { messages: [] }, isContinued: false };
  const [first, second] = ['d', 'd'].map(
    (digest) => new Generation('r', 't', input, { kind: 'id', key: 'r', digest }),
  ) as [Generation, Generation];
  first.tokens.take({
    text: 'a',
    tokenCount: 2,
    choice: { delta: { reasoning: 'b', content: 'a' }, finish_reason: 'stop' },
  });
  first.calls.start({ serverId: 's', model: 'm' });
  const usage = { promptTokens: 3, completionTokens: 2, cachedTokens: 1 };
  first.report.takeResult({ engineFields: { more: [1] }, usage }, { start: 0, end: 2, weightVersion: 3 });
  expect(await saves().keepWhole(first, { reason: 'stop', matched: 7 })).toBe(true);
  saves().begin(second, claimed());
  for (const one of [first, second]) {
    expect(one.tokens.message).toMatchObject({ finishReason: 'stop', isInContent: true });
    expect(one.tokens.message!.after()).toEqual({ reasoning: 'b', content: 'a' });
    expect(one.calls).toMatchObject({ serverId: 's', model: 'm' });
    expect(one.report).toMatchObject({ promptTokens: 3, cachedTokens: 1, fields: { more: [1] } });
    expect([one.tokens.count, one.tokens.text, one.tokens.allIds]).toEqual([2, 'a', undefined]);
  }
  expect(second.restoredEnd).toEqual({ reason: 'stop', matched: 7 });
});

it('restores a log probability that the engine has not computed', async () => {
  const [first, second] = [generation(), generation()];
  const [before, after] = [saves(), saves()];
  before.begin(first, {});
  first.tokens.take({ text: 'ab', tokenIds: [5, 6], logprobs: [-0.5, null], tokenCount: 2 });
  expect(await before.keep(first)).toBe(true);
  after.begin(second, claimed());
  expect(JSON.stringify(second.tokens.allLogprobs)).toBe('[-0.5,null]');
});

it('does not save a complete response: a repeat would continue it after its end', async () => {
  const [complete, other] = [generation('complete'), generation('other')];
  const running = saves();
  for (const one of [complete, other]) running.begin(one, {});
  running.onApplicationBootstrap();
  for (const one of [complete, other]) one.restore(restored());
  await expect.poll(() => saved.size).toBe(2);
  // This token is the last one, but the stream has not ended.
  complete.tokens.take({ text: '', tokenIds: [7], tokenCount: 1, isLast: true });
  other.tokens.take({ text: 'c', tokenIds: [7], tokenCount: 1 });
  const listSavedIds = () => ['complete', 'other'].map((key) => joinedIds(`t\n${key}`));
  await expect.poll(listSavedIds).toEqual([
    [5, 6],
    [5, 6, 7],
  ]);
  running.onApplicationShutdown();
  // The saved tokens are removed with the claim if they are not kept.
  expect([await running.keep(complete), await running.keep(other)]).toEqual([false, true]);
});

it('restores an answer that is passed on, unless it is too large', async () => {
  const [first, second] = [generation(), generation()];
  const pieces = ['data: ü', '\n\n'].map((text) => Buffer.from(text));
  for (const piece of pieces) first.addPiece(piece, 'text/event-stream');
  expect(await saves().keepWhole(first, { reason: 'stop' })).toBe(true);
  saves().begin(second, claimed());
  expect(second.answer).toMatchObject({ status: 200, contentType: 'text/event-stream', isWhole: false });
  expect(Buffer.concat(second.answer!.pieces).toString()).toBe('data: ü\n\n');
  expect(second.restoredEnd).toEqual({ reason: 'stop' });
  saved.clear();
  first.addPiece(Buffer.alloc(4 * 1_048_576 + 1), 'text/event-stream');
  expect([await saves().keepWhole(first, { reason: 'stop' }), saved.size]).toEqual([false, 0]);
});
