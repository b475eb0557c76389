import { BroomwagonError, type ServerStatus } from '@broomwagon/contracts';
import type { ControlPlane, EngineAdapters } from '@broomwagon/generation';
import { afterEach, expect, it, vi } from 'vitest';
import { TokenizerRoutes } from './tokenizer-routes';

afterEach(() => vi.useRealTimers());

it('asks engines that do not answer within one deadline, each with half of the remaining time', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  const servers = Array.from({ length: 20 }, (_, n) => ({ serverId: `s${n}`, state: 'ready' }) as ServerStatus);
  const controlPlane = { call: () => Promise.resolve({ servers }) } as unknown as ControlPlane;
  const asked: number[] = [];
  const forward = ({ timeoutMs }: { timeoutMs: number }) => {
    asked.push(timeoutMs);
    vi.advanceTimersByTime(timeoutMs);
    return Promise.reject(new BroomwagonError('ENGINE_UNREACHABLE', 'no answer'));
  };
  const routes = new TokenizerRoutes(controlPlane, { of: () => ({ forward }) } as unknown as EngineAdapters);
  await expect(routes.ask('/tokenize', Buffer.from('{}'))).rejects.toMatchObject({ code: 'ENGINE_UNREACHABLE' });
  expect(asked.slice(0, 3)).toEqual([15_000, 7_500, 3_750]);
  expect(asked.reduce((sum, ms) => sum + ms, 0)).toBeLessThan(30_000);
});

it.each([401, 403])('does not pass on the refusal of the key of the gateway by an engine: %s', async (status) => {
  const servers = ['s1', 's2'].map((serverId) => ({ serverId, state: 'ready' }) as ServerStatus);
  const controlPlane = { call: () => Promise.resolve({ servers }) } as unknown as ControlPlane;
  const asked: string[] = [];
  let last = { status, text: '' };
  const of = ({ serverId }: ServerStatus) => ({
    forward: () => Promise.resolve(asked.push(serverId) === 1 ? { status, text: '' } : last),
  });
  const routes = new TokenizerRoutes(controlPlane, { of } as unknown as EngineAdapters);
  await expect(routes.ask('/tokenize', Buffer.from('{}'))).rejects.toMatchObject({ code: 'ENGINE_ERROR' });
  expect(asked.toSorted()).toEqual(['s1', 's2']);
  last = { status: 200, text: '{}' };
  asked.length = 0;
  expect(await routes.ask('/tokenize', Buffer.from('{}'))).toEqual(last);
});
