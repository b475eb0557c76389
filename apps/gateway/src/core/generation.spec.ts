import { MovableCall } from '@broomwagon/generation';
import { afterEach, beforeEach, expect, expectTypeOf, it, vi } from 'vitest';
import type { CallHistory } from './call-history';
import type { EngineReport } from './engine-report';
import { Generation } from './generation';
import { INPUT } from './generation.fixture';

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

const createCall = (): MovableCall => new MovableCall({ workerId: 'w', workerEpoch: 'e' }, {});

it('is watched for a limited time from the first token of its client, and without limit for 0', () => {
  const generation = new Generation('g', '', INPUT);
  const isWatched = (ageMs: number): boolean => generation.isWatchedForLess(ageMs);
  expect(isWatched(2_000)).toBe(false);
  const stopListening = generation.onChange(() => undefined);
  vi.advanceTimersByTime(60_000);
  expect(isWatched(2_000)).toBe(true);
  generation.receive({ text: 'a', tokenCount: 1 }, 0);
  vi.advanceTimersByTime(1_999);
  expect(isWatched(2_000)).toBe(true);
  vi.advanceTimersByTime(1);
  expect([isWatched(2_000), isWatched(0)]).toEqual([false, true]);
  stopListening();
  expect(isWatched(0)).toBe(false);
});

it('stops the running call with the first cause, and each call that starts after the stop', () => {
  const generation = new Generation('g', '', INPUT);
  const [ended, running, next] = [createCall(), createCall(), createCall()];
  generation.startCall(ended);
  generation.endCall();
  generation.startCall(running);
  generation.stop('shutdown');
  generation.stop('abort');
  generation.startCall(next);
  expect([ended, running, next].map(({ cause }) => cause)).toEqual([undefined, 'shutdown', 'shutdown']);
  expect([generation.stoppedBy, generation.signal.aborted]).toEqual(['shutdown', true]);
});

it('has the end of a restored response before clients have it, and no call', () => {
  const generation = new Generation('g', '', INPUT);
  const whole = { end: { reason: 'length' } as const, tokenCount: 1, engineFields: {} };
  generation.restore({ tokenIds: [7], text: 'a', spans: [], isVersionReported: true, whole });
  expect([generation.restoredEnd, generation.end]).toEqual([whole.end, undefined]);
  expect(() => generation.startCall(createCall())).toThrow('A generation cannot be running after restored');
  generation.finish(whole.end);
  expect([generation.restoredEnd, generation.end]).toEqual([undefined, whole.end]);
});

it('keeps its first end, and is neither stopped nor called after it', async () => {
  const generation = new Generation('g', '', INPUT);
  let changes = 0;
  generation.onChange(() => (changes += 1));
  generation.startCall(createCall());
  generation.finish({ reason: 'length' });
  generation.finish({ reason: 'stop' });
  generation.stop('abort');
  expect([generation.end, await generation.ended]).toEqual([{ reason: 'length' }, { reason: 'length' }]);
  expect([generation.stoppedBy, changes]).toEqual([undefined, 1]);
  for (const enter of [() => generation.startCall(createCall()), () => generation.endCall()]) {
    expect(enter).toThrow('after ended');
  }
});

/** Names of fields that other code can assign. */
type Assignable<T> = {
  [Name in keyof T]-?: T[Name] extends (...values: never[]) => unknown
    ? never
    : IsSame<Pick<T, Name>, { readonly [Same in Name]: T[Same] }> extends true
      ? never
      : Name;
}[keyof T];
type IsSame<One, Other> = (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false;

it('changes by its methods only: no field can be assigned', () => {
  expectTypeOf<Assignable<{ written: number; readonly read: number; method(): void }>>().toEqualTypeOf<'written'>();
  expectTypeOf<Assignable<Generation>>().toBeNever();
  expectTypeOf<Assignable<EngineReport>>().toBeNever();
  expectTypeOf<Assignable<CallHistory>>().toBeNever();
});
