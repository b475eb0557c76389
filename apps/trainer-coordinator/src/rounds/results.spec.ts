import { InspectionStore, LedgerStore } from '@broomwagon/state';
import { flushPrefix, testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CoordinatorFixture, groups, openRequest } from '../coordinator.fixture';
import { LedgerService } from '../ledger/ledger.service';
import { ResultsService } from './results.service';
import type { WaitingReaders } from './waiting-readers';

let fixture: CoordinatorFixture;
beforeAll(async () => {
  fixture = await CoordinatorFixture.start(1);
});
afterAll(() => fixture.stop());

it('answers GENERATION_CHANGED if Redis loses the round between its groups and their acceptance', async () => {
  const { runner, rounds } = fixture;
  const worker = await fixture.worker('w');
  const wanted = { groupsPerStep: 1, remainingGroups: 1, policy: { name: 'wait' as const } };
  const plan = await fixture.call('round.next', { job: 'job', ...wanted });
  const { roundId, trainerEpoch } = await fixture.call('round.open', openRequest('job', plan, wanted.policy));
  const round = { job: 'job', roundId, trainerEpoch };
  await fixture.call('round.submit', { ...round, groups: groups(1) });
  await worker.finishAll();
  const { stamp } = await fixture.call('round.status', round);

  class LosingLedger extends LedgerService {
    override async acceptanceBefore(...about: Parameters<LedgerService['acceptanceBefore']>) {
      await flushPrefix(testRedisUrl(), fixture.rootKey);
      return super.acceptanceBefore(...about);
    }
  }
  const ledger = new LosingLedger(new LedgerStore(runner), new InspectionStore(runner), rounds);
  const results = new ResultsService(rounds, ledger, {} as WaitingReaders);
  await expect(results.results(fixture.pool, { ...round, stamp })).rejects.toMatchObject({
    code: 'GENERATION_CHANGED',
  });
});
