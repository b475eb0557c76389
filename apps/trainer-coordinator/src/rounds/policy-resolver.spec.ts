import { afterEach, describe, expect, it, vi } from 'vitest';
import type { TailPolicy } from '@broomwagon/contracts';
import { type ControlInput, recordGroup, resolvePolicy } from '@broomwagon/policies';
import { PolicyResolver } from './policy-resolver';

const AUTO: TailPolicy = { name: 'auto' };
const LENGTHS = Array.from({ length: 32 }, (_, index) => [100, 100, index % 8 === 0 ? 1_000 : 100]);
const PAST: ControlInput = {
  history: [
    {
      acceptedGroups: LENGTHS.length,
      acceptedTokens: 0,
      longestTokens: 1_000,
      durationMs: 1_000,
      bulkGroups: LENGTHS.length,
      bulkMs: 1_000,
      tailGroups: 0,
      tailMs: 0,
      lengths: {},
      newGroups: LENGTHS.length,
      recorded: LENGTHS.map((lengths) => recordGroup({ lengths, finishedMs: Math.max(...lengths) })).join(''),
    },
  ],
};

afterEach(() => vi.restoreAllMocks());

describe('PolicyResolver', () => {
  it('finds what the policies find, and gives the event loop back meanwhile', async () => {
    let now = 0;
    // Each look at the clock is a millisecond later.
    vi.spyOn(performance, 'now').mockImplementation(() => (now += 1));
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const resolved = await new PolicyResolver().resolve(AUTO, PAST, Infinity);
    isOver = true;
    expect(resolved).toEqual(resolvePolicy(AUTO, PAST));
    expect(resolved.choice!.auto!.reason).not.toBe('late');
    // Some hundred steps are replayed, and a slice has about ten.
    expect(turns).toBeGreaterThan(20);
  });

  it('gives a round the choice of its plan when the ledger has counted its batches meanwhile', async () => {
    const resolver = new PolicyResolver();
    const costs = { offPolicyShare: 0.1, lengthBias: 1 };
    const measured = (batchVariation: number) =>
      ({ ...costs, waste: { tokens: 1, share: 0.1 }, batchVariation }) as unknown as ControlInput['measured'];
    const planned = await resolver.resolve(AUTO, { ...PAST, measured: measured(0.1) });
    expect(await resolver.resolve(AUTO, { ...PAST, measured: measured(0.2) })).toBe(planned);
    const other = { ...measured(0.1)!, offPolicyShare: 0.2 };
    expect(await resolver.resolve(AUTO, { ...PAST, measured: other })).not.toBe(planned);
  });

  it('gives a round the choice of its plan, even if it was late', async () => {
    const resolver = new PolicyResolver();
    const planned = await resolver.resolve(AUTO, PAST, 0);
    expect(planned.choice!.auto!.reason).toBe('late');
    expect(planned.policy.name).toBe('wait');
    expect(await resolver.resolve({ ...AUTO }, structuredClone(PAST), Infinity)).toBe(planned);
    // Another past is another choice.
    const other = await resolver.resolve(AUTO, { ...PAST, control: {} }, Infinity);
    expect(other.choice!.auto!.reason).not.toBe('late');
  });

  it('chooses for other jobs after a choice has failed', async () => {
    const resolver = new PolicyResolver();
    const broken: ControlInput = { history: [{ ...PAST.history![0]!, recorded: 1 as never }] };
    await expect(resolver.resolve(AUTO, broken)).rejects.toThrow();
    await expect(resolver.resolve(AUTO, broken)).rejects.toThrow();
    expect((await resolver.resolve(AUTO, PAST, Infinity)).choice!.auto!.frontier).not.toEqual([]);
  });

  it('refuses more choices than may wait, and keeps those that do', async () => {
    const resolver = new PolicyResolver();
    const pasts = Array.from({ length: 33 }, (_, index) => ({
      ...PAST,
      control: { overProvision: { '': index + 1 } },
    }));
    const asked = pasts.slice(0, 32).map((past) => resolver.resolve(AUTO, past, 0));
    await expect(resolver.resolve(AUTO, pasts[32]!, 0)).rejects.toMatchObject({ code: 'OVERLOADED', retryable: true });
    const repeated = await resolver.resolve(AUTO, pasts[0]!, 0);
    expect(repeated).toBe(await asked[0]);
    await Promise.all(asked);
    expect((await resolver.resolve(AUTO, pasts[32]!, 0)).choice!.auto!.reason).toBe('late');
  });
});
