import type { OpenRoundRequest } from '@broomwagon/contracts';
import type { LedgerStore, OpenRoundArgs, PoolDirectory, RoundStore, ServerStore } from '@broomwagon/state';
import { expect, it, vi } from 'vitest';
import { CoordinatorConfig } from '../coordinator.config';
import type { RoundSweeps } from './round-sweeps';
import { PolicyResolver } from './policy-resolver';
import { RoundService } from './round.service';

/** A service whose job has this progress, with its calls of the resolver and of the store. */
function createService(progress: object) {
  const resolver = new PolicyResolver();
  const resolve = vi.spyOn(resolver, 'resolve');
  const open = vi.fn(async (_pool: string, _args: OpenRoundArgs) => ({ state: 'open' }));
  const read = vi.fn(async (_pool: string, _args: object) => progress);
  const service = new RoundService(
    { progress: read, open } as unknown as RoundStore,
    {} as LedgerStore,
    { add: async () => {} } as unknown as PoolDirectory,
    {} as ServerStore,
    {} as RoundSweeps,
    resolver,
    new CoordinatorConfig(),
  );
  return { service, resolve, open, read };
}

it('answers ROUND_SETTLING under `auto` without a choice, which takes long and is asked for again', async () => {
  const progress = { stepsTrained: 9, longtailGroups: 4, settlingGroups: 1, stamp: 's' };
  const { service, resolve } = createService(progress);
  const next = () => service.next('p', { job: 'j', policy: { name: 'auto' }, groupsPerStep: 4, remainingGroups: 8 });
  await expect(next()).rejects.toMatchObject({ code: 'ROUND_SETTLING', retryable: true });
  expect(resolve).not.toHaveBeenCalled();
  progress.settlingGroups = 0;
  expect((await next()).choice?.auto).toMatchObject({ policy: 'wait' });
  expect(resolve).toHaveBeenCalledOnce();
});

const factors = { offPolicyShare: 1, lengthBias: 1, wasteShare: 3 };
const PROGRESS = {
  stepsTrained: 9,
  longtailGroups: 0,
  settlingGroups: 0,
  stamp: 's',
  control: { auto: { name: 'drip', overProvision: 1.5, factors } },
};
const OPENING: OpenRoundRequest = {
  job: 'j',
  trainerEpoch: 'e',
  stamp: 's',
  roundId: 'r',
  planId: 'p',
  step: 10,
  kind: 'short',
  neededGroups: 4,
  newGroups: 4,
  takeGroups: 0,
  weightVersion: 9,
  policy: { name: 'auto' },
};

it.each([
  ['a round is open', { ...PROGRESS, openRoundId: 'r' }, 10],
  ['the step is trained', PROGRESS, 9],
  ['the step is not the next', PROGRESS, 11],
])('opens rounds under `auto` without a choice that is not needed: %s', async (_, progress, step) => {
  const { service, resolve, open } = createService(progress);
  await service.open('p', { ...OPENING, step });
  expect(resolve).not.toHaveBeenCalled();
  // The job may train a step between the read and the transition: the round then has `wait`, and keeps the learned
  // factors.
  expect(open.mock.lastCall![1]).toMatchObject({
    choice: { auto: { policy: 'wait', reason: 'unknown' } },
    control: { auto: { name: 'wait', overProvision: 1, factors } },
  });
});

it('makes a choice for the next round, after the fences of its trainer', async () => {
  const { service, resolve, read } = createService(PROGRESS);
  await service.open('p', OPENING);
  expect(resolve).toHaveBeenCalledOnce();
  expect(read.mock.lastCall![1]).toMatchObject({ job: 'j', trainerEpoch: 'e', stamp: 's' });
});
