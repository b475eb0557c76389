import type { LedgerStore, PoolDirectory, RoundStore, ServerStore } from '@broomwagon/state';
import { expect, it, vi } from 'vitest';
import { CoordinatorConfig } from '../coordinator.config';
import type { SweepService } from '../upkeep/sweep.service';
import { PolicyResolver } from './policy-resolver';
import { RoundService } from './round.service';

it('answers ROUND_SETTLING under `auto` without a choice, which takes long and is asked for again', async () => {
  const progress = { stepsTrained: 9, longtailGroups: 4, settlingGroups: 1, stamp: 's' };
  const resolver = new PolicyResolver();
  const resolve = vi.spyOn(resolver, 'resolve');
  const service = new RoundService(
    { progress: async () => progress } as unknown as RoundStore,
    {} as LedgerStore,
    {} as PoolDirectory,
    {} as ServerStore,
    {} as SweepService,
    resolver,
    new CoordinatorConfig(),
  );
  const next = () => service.next('p', { job: 'j', policy: { name: 'auto' }, groupsPerStep: 4, remainingGroups: 8 });
  await expect(next()).rejects.toMatchObject({ code: 'ROUND_SETTLING', retryable: true });
  expect(resolve).not.toHaveBeenCalled();
  progress.settlingGroups = 0;
  expect((await next()).choice?.auto).toMatchObject({ policy: 'wait' });
  expect(resolve).toHaveBeenCalledOnce();
});
