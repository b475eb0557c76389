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
  it('chooses the same policy as without slices, and gives the event loop back meanwhile', async () => {
    let now = 0;
    // Each read of the clock is a millisecond later.
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

  it('gives a round the choice of its plan while the ledger has the same costs', async () => {
    const resolver = new PolicyResolver();
    const measured = { offPolicyShare: 0.1, lengthBias: 1, wasteShare: 0.1 };
    // Only a choice that is made again is not late.
    const planned = await resolver.resolve(AUTO, { ...PAST, measured }, 0);
    expect(planned.choice!.auto!.reason).toBe('late');
    expect(await resolver.resolve(AUTO, { ...PAST, measured: { ...measured } }, Infinity)).toEqual(planned);
    const changed = { ...measured, offPolicyShare: 0.2 };
    const other = await resolver.resolve(AUTO, { ...PAST, measured: changed }, Infinity);
    expect(other.choice!.auto!.reason).not.toBe('late');
  });

  it('gives a round the choice of its plan, even if it was late', async () => {
    const resolver = new PolicyResolver();
    const planned = await resolver.resolve(AUTO, PAST, 0);
    expect(planned.choice!.auto!.reason).toBe('late');
    expect(planned.policy.name).toBe('wait');
    expect(await resolver.resolve({ ...AUTO }, structuredClone(PAST), Infinity)).toEqual(planned);
    // Another past is another choice.
    const control = { auto: { name: 'drip', overProvision: 1.25 } } as const;
    const other = await resolver.resolve(AUTO, { ...PAST, control }, Infinity);
    expect(other.choice!.auto!.reason).not.toBe('late');
  });

  it('gives a round the choice of its plan when the opening has other fields that the choice does not read', async () => {
    const resolver = new PolicyResolver();
    const planned = await resolver.resolve(AUTO, PAST, 0);
    const cut = { '': { finished: {}, censored: { 7: 1 } } };
    const past = { history: [{ ...PAST.history![0]!, lengths: cut, tailMs: 7 }] };
    const opened = await resolver.resolve({ ...AUTO, shortfall: 'accept-fewer' }, past, Infinity);
    expect(opened).toEqual({ ...planned, policy: { ...planned.policy, shortfall: 'accept-fewer' } });
    expect(opened.choice!.auto!.reason).toBe('late');
    const bounded = await resolver.resolve({ ...AUTO, maxCuts: 1 }, PAST, Infinity);
    expect(bounded.choice!.auto!.reason).not.toBe('late');
  });

  it('chooses for other jobs after a choice has failed', async () => {
    const resolver = new PolicyResolver();
    const broken: ControlInput = { history: [{ ...PAST.history![0]!, recorded: 1 as never }] };
    await expect(resolver.resolve(AUTO, broken)).rejects.toThrow();
    await expect(resolver.resolve(AUTO, broken)).rejects.toThrow();
    expect((await resolver.resolve(AUTO, PAST, Infinity)).choice!.auto!.frontier).not.toEqual([]);
  });

  it('refuses more choices than may wait, and keeps the waiting choices', async () => {
    const resolver = new PolicyResolver();
    const pasts = Array.from({ length: 33 }, (_, index) => ({
      ...PAST,
      control: { auto: { name: 'drip' as const, overProvision: 1 + index } },
    }));
    const asked = pasts.slice(0, 32).map((past) => resolver.resolve(AUTO, past, 0));
    await expect(resolver.resolve(AUTO, pasts[32]!, 0)).rejects.toMatchObject({
      code: 'OVERLOADED',
      retryable: true,
      retryAfterMs: 1_000,
    });
    const repeated = await resolver.resolve(AUTO, pasts[0]!, 0);
    expect(repeated).toEqual(await asked[0]);
    await Promise.all(asked);
    expect((await resolver.resolve(AUTO, pasts[32]!, 0)).choice!.auto!.reason).toBe('late');
  });
});
