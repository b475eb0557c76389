import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LIMITS } from '@broomwagon/contracts';
import { ServerSigns } from './server-signs';

const A = { serverId: 'a', epoch: 'e' };
let signs: ServerSigns;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] });
  signs = new ServerSigns();
});
afterEach(() => vi.useRealTimers());
const pass = (ms: number) => vi.advanceTimersByTime(ms);

it('reports the time in which streams have run without a token, and the longest prompt that may explain it', () => {
  signs.begin(A, 5);
  const long = signs.begin(A, 900);
  pass(3_000);
  expect(signs.report()).toEqual([{ ...A, tokens: 0, silentMs: 3_000, contextTokens: 900 }]);
  pass(2_000);
  long.receive(4);
  expect(signs.report()).toEqual([{ ...A, tokens: 4, silentMs: 0, contextTokens: 5 }]);
  pass(2_000);
  expect(signs.report()).toMatchObject([{ tokens: 0, silentMs: 2_000 }]);
});

it('counts the silence of streams whose callers gave up, and no time between them', () => {
  const first = signs.begin(A, 1);
  pass(3_000);
  first.end();
  expect(signs.report()).toEqual([]);
  pass(60_000);
  signs.begin(A, 1);
  pass(3_000);
  expect(signs.report()).toMatchObject([{ silentMs: 6_000 }]);
});

it('takes the time that an event of several tokens needs for no silence, also of streams without a second event', () => {
  const slow = signs.begin(A, 1);
  slow.receive(1);
  for (let events = 0; events < 2; events++) {
    pass(64_000);
    slow.receive(64);
  }
  expect(signs.report()).toMatchObject([{ tokens: 129, silentMs: 0 }]);
  pass(70_000);
  expect(signs.report()).toMatchObject([{ silentMs: 6_000 }]);
  slow.end();
  signs.begin(A, 1).receive(1);
  signs.report();
  pass(65_000);
  expect(signs.report()).toMatchObject([{ silentMs: 1_000 }]);
});

it('takes an answer that is not streamed for a sign only when it arrives', () => {
  const call = signs.begin(A, undefined);
  pass(90_000);
  expect(signs.report()).toEqual([]);
  call.receive(1);
  call.end();
  expect(signs.report()).toEqual([{ ...A, tokens: 1, silentMs: 0 }]);
});

it('reports all of many servers in turn', () => {
  for (let n = 0; n <= LIMITS.page; n++) signs.begin({ ...A, serverId: `s${n}` }, 1);
  const names = [...signs.report(), ...signs.report()].map(({ serverId }) => serverId);
  expect(names).toHaveLength(2 * LIMITS.page);
  expect(new Set(names).size).toBe(LIMITS.page + 1);
});

it('reports once how the events of the last stream came that tells', () => {
  const streams = [1, 1, 1].map((contextTokens) => signs.begin(A, contextTokens));
  for (const [index, tokens] of [1, 7].entries()) streams[index]!.noteInterval(tokens);
  expect(signs.report()).toMatchObject([{ observedStreamInterval: 7 }]);
  expect(signs.report()[0]).not.toHaveProperty('observedStreamInterval');
  streams[2]!.noteInterval(0);
  expect(signs.report()).toMatchObject([{ observedStreamInterval: 0 }]);
});
