import { describe, expect, it } from 'vitest';
import { AGENTIC } from '../parameters';
import { ProductionRouter } from '../routing/production-router';
import { AgenticRun, type AgenticRequest } from './agentic-run';
import { PrefixCache } from './prefix-cache';

describe('trajectories of many turns', () => {
  const setup = { ...AGENTIC, servers: 4, trajectories: 96 };
  const run = (settings: ConstructorParameters<typeof ProductionRouter>[1], seed = 1) =>
    new AgenticRun(setup, seed).run(new ProductionRouter(setup.servers, settings));

  it('end the same under the same seed', () => {
    expect(run({})).toEqual(run({}));
    expect(run({}, 2)).not.toEqual(run({}));
  });

  it('are the same with an asynchronous router', async () => {
    const router = new ProductionRouter(setup.servers);
    const remote = {
      choose: (request: AgenticRequest) => Promise.resolve(router.choose(request)!),
      released: (server: number, request: AgenticRequest) => Promise.resolve(router.released(server, request)),
    };
    expect(await new AgenticRun(setup, 1).runRemotely(remote)).toEqual(run({}));
  });

  it('end with their groups, which differ more when siblings have as many turns', () => {
    const runGroups = (turnsPromptShare: number) => {
      const result = new AgenticRun({ ...setup, turnsPromptShare }, 1).run(new ProductionRouter(setup.servers));
      expect(result.groups.meanSeconds).toBeGreaterThan(result.meanSeconds);
      expect(result.groups.p90Seconds).toBeGreaterThanOrEqual(result.p90Seconds);
      return result.groups.p90Seconds / result.groups.meanSeconds;
    };
    expect(runGroups(1)).toBeGreaterThan(1.15 * runGroups(0));
  });

  it('find their context in the prefix cache if they are sticky', () => {
    expect(run({}).cacheHitShare).toBeGreaterThan(0.8);
  });
});

describe('prefix cache', () => {
  it('drops the end of the longest idle context first, and only as much as it must', () => {
    const cache = new PrefixCache(100);
    cache.put('a', 40);
    cache.put('b', 40);
    cache.put('a', 50);
    cache.trim(10);
    cache.put('c', 20);
    cache.trim(0);
    expect([cache.take('b'), cache.take('a'), cache.take('c'), cache.take('a')]).toEqual([30, 50, 20, 0]);
    cache.put('d', 40);
    cache.put('e', 40);
    cache.trim(70);
    expect([cache.take('d'), cache.take('e')]).toEqual([0, 30]);
  });
});
