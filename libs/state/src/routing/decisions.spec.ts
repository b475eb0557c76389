import type { DecisionsReply } from '@broomwagon/contracts';
import { chooseServer, replayDecision } from '@broomwagon/policies';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { InspectionStore } from '../inspection/inspection.store';
import { openTestStore, openTestWorker, type TestStore } from './routing-store.fixture';

let test: TestStore;
let inspections: InspectionStore;
let worker: Awaited<ReturnType<typeof openTestWorker>>;
beforeEach(async () => {
  test = openTestStore();
  inspections = new InspectionStore(test.runner);
  worker = await openTestWorker(test);
});
afterEach(() => test.close());

describe('decisions', () => {
  it('are in the reply, and are stored in a bounded ring, which is read in pages, the latest first', async () => {
    for (const id of ['a', 'b', 'c', 'd', 'e']) await test.server(id, 1_000);
    const first = await worker.acquire();
    expect(first).toMatchObject({ policy: 'least-inflight', branch: 'tie', key: 0, eligible: 5, policyVersion: 0 });
    expect(first.best?.map(({ serverId }) => serverId)).toEqual(['a', 'b', 'c', 'd']);
    for (let page = 0; page < 6; page++) {
      const items = Array.from({ length: 100 }, (_, n) => ({
        acquireId: `x${page * 100 + n}`,
        requestId: 'r',
        ...worker.holder,
      }));
      await test.leases.acquire(test.pool, items);
    }
    const seen: number[] = [];
    let cursor: string | undefined;
    do {
      const page: DecisionsReply = await inspections.decisions(test.pool, { cursor, limit: 100 });
      seen.push(...page.decisions.map(({ seq }) => seq));
      ({ cursor } = page);
    } while (cursor !== undefined);
    expect(seen).toEqual(Array.from({ length: seen.length }, (_, n) => 601 - n));
    expect(seen.length).toBeGreaterThanOrEqual(512);
    expect(seen.length).toBeLessThan(576);
    const { decisions } = await inspections.decisions(test.pool, { limit: 1 });
    expect(decisions[0]).toMatchObject({ acquireId: 'x599', decision: { branch: 'tie', key: 120, eligible: 5 } });
    expect(decisions[0]!.decision.best).toHaveLength(4);
  });

  it('contain all their inputs when requested or sampled, and can be replayed from these', async () => {
    for (const id of ['a', 'b', 'c']) await test.server(id);
    const explained = await worker.acquire({ explain: true, groupId: 'g', sessionId: 's' });
    expect(explained.snapshot).toMatchObject({ request: { groupId: 'g', sessionId: 's' }, newestWeightVersion: 0 });
    expect(explained.snapshot!.servers).toHaveLength(3);
    expect(replayDecision(explained.snapshot!)).toMatchObject({ server: explained.serverId, branch: 'tie' });
    await test.configure({ decisionSampleEvery: 10 });
    await worker.acquirePlaces(30);
    const { decisions } = await inspections.decisions(test.pool, { full: true });
    expect(decisions.map(({ seq }) => seq)).toEqual([30, 20, 10, 1]);
    for (const { decision, serverId } of decisions) {
      expect(chooseServer(decision.snapshot!)).toMatchObject({ server: serverId, branch: decision.branch });
    }
  });
});
