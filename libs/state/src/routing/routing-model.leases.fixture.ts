import type { BroomwagonError, EngineFeature, Labels } from '@broomwagon/contracts';
import * as fc from 'fast-check';
import { expect } from 'vitest';
import { acquireId, command, rarely, serverId, workerId } from './routing-model.commands.fixture';
import { leases, replayed, sessions } from './routing-model.fixture';

/** Number of transfers that moved a lease so far, repeats included. */
export let transfers = 0;

export const acquire = fc
  .record({
    acquireId,
    workerId,
    stale: fc.integer({ min: 0, max: 40 }).map((n) => n === 0),
    sessionId: fc.option(fc.constantFrom('x', 'y', 'z'), { nil: undefined }),
    priority: fc.option(fc.constantFrom(2, 5, 9), { nil: undefined }),
    weightVersion: rarely(fc.constantFrom(0, 1)),
    waits: fc.boolean(),
    requestId: fc.constantFrom('j/g1/0', 'j/g1/1', 'j/g2/0'),
    groupId: fc.option(fc.constantFrom('g1', 'g2'), { nil: undefined }),
    contextTokens: fc.option(fc.constantFrom(0, 300, 2_048, 5_000), { nil: undefined }),
    minWeightVersion: rarely(fc.constantFrom(0, 1)),
    maxWeightLag: rarely(fc.constantFrom(0, 1)),
    excludeServers: rarely(fc.subarray(['s1', 's2', 's3', 's4'])),
    labels: rarely(fc.constantFrom<Labels>({}, { zone: 'a' }, { zone: 'b' })),
    needs: rarely(fc.subarray<EngineFeature>(['tokenIdsIn', 'logprobs'])),
    model: rarely(fc.constantFrom('a', 'a:lora', 'other')),
    dpRank: rarely(fc.constantFrom(0, 1)),
    boundServerId: rarely(serverId),
    boundServerEpoch: rarely(fc.nat({ max: 6 })),
  })
  .map(({ stale, boundServerEpoch: nth, ...said }) =>
    command(`acquire ${JSON.stringify({ ...said, stale, nth })}`, async (pair) => {
      const wanted = { ...said, boundServerEpoch: nth === undefined ? undefined : (pair.epochs[nth] ?? 'e0') };
      const workerEpoch = (!stale && pair.workerEpochs.get(wanted.workerId)) || 'e0';
      const expected = pair.model.acquire({ ...wanted, workerEpoch });
      const { waits, ...item } = wanted;
      const parking = waits ? { waitMs: 30_000, replyTo: `inbox.${wanted.acquireId}` } : {};
      const { results } = await leases.acquire(pair.pool, [{ ...item, ...parking, workerEpoch }]);
      expect(results.map(replayed)).toEqual([expected]);
      // A repeated acquire without a wait removes its waiter, and its answer is the only one.
      if (!('parked' in expected) && pair.model.lanes.get(wanted.acquireId) === undefined) {
        pair.waiting.delete(wanted.acquireId);
      }
      pair.remember(wanted.acquireId, expected);
    }),
  );

export const release = fc
  .record({ acquireId, by: fc.constantFrom('acquireId', 'leaseId', 'older leaseId') })
  .map(({ acquireId: id, by }) =>
    command(`release ${id} by ${by}`, async (pair) => {
      const given = pair.sequences.get(id) ?? [];
      const seq = by === 'acquireId' ? undefined : ((by === 'leaseId' ? given.at(-1) : given[0]) ?? 999_999);
      const expected = pair.model.release(id, seq);
      const reply = await leases.release(pair.pool, [{ acquireId: id, seq }]);
      expect(reply.results).toEqual([{ released: expected.released, reason: expected.reason }]);
      pair.compareAnswers(reply.answers, expected.answers);
    }),
  );

export const transfer = fc
  .record({
    nth: fc.nat(),
    repeats: rarely(fc.constant(true)),
    unknown: rarely(acquireId),
    stranger: rarely(workerId),
    target: serverId,
    targetEpoch: rarely(fc.nat({ max: 6 })),
    by: fc.constantFrom('acquireId', 'leaseId', 'leaseId', 'older leaseId'),
  })
  .map(({ nth, repeats, unknown, stranger, target, targetEpoch, by }) =>
    command(
      `transfer ${JSON.stringify({ nth, repeats, unknown, stranger, target, targetEpoch, by })}`,
      async (pair) => {
        const live = [...pair.model.leases.values()].map((lease) => lease.acquire);
        const { acquireId: id = 'a1', workerId: holder = 'w:1' } = live[nth % live.length] ?? {};
        const given = pair.sequences.get(unknown ?? id) ?? [];
        const fresh = {
          transferId: `t${pair.transfers.length}`,
          acquireId: unknown ?? id,
          seq: by === 'acquireId' ? undefined : ((by === 'leaseId' ? given.at(-1) : given[0]) ?? 999_999),
          workerId: stranger ?? holder,
          workerEpoch: pair.workerEpochs.get(stranger ?? holder) ?? 'e0',
          targetServerId: target,
          targetEpoch: targetEpoch === undefined ? undefined : (pair.epochs[targetEpoch] ?? 'e0'),
        };
        const entry = (repeats && pair.transfers[nth % pair.transfers.length]) || fresh;
        pair.transfers.push(entry);
        const expected = pair.model.transfer(entry);
        const real = await leases.transfer(pair.pool, entry).catch((error: BroomwagonError) => ({ code: error.code }));
        if ('error' in expected.answer) return expect(real).toEqual({ code: expected.answer.error });
        if ('code' in real) throw new Error(`refused: ${real.code}`);
        expect(real.granted).toEqual(expected.answer);
        pair.compareAnswers(real.answers ?? [], expected.answers);
        transfers++;
      },
    ),
  );

export const finishSession = fc.constantFrom('x', 'y').map((sessionId) =>
  command(`finish ${sessionId}`, async (pair) => {
    const finished = pair.model.finishSession(sessionId);
    expect(await sessions.finish(pair.pool, { sessionId })).toMatchObject({ finished });
  }),
);

export const clearSessions = fc.constant(
  command('clear sessions', async (pair) => {
    expect(await sessions.clear(pair.pool)).toBe(pair.model.clearSessions());
  }),
);

export const cancel = fc.record({ acquireId, workerId }).map(({ acquireId: id, workerId: by }) =>
  command(`cancel ${id} by ${by}`, async (pair) => {
    const workerEpoch = pair.workerEpochs.get(by) ?? 'e0';
    const expected = pair.model.cancel(id, by, workerEpoch);
    const reply = await leases
      .cancel(pair.pool, { workerId: by, workerEpoch, acquireId: id })
      .catch(({ code }: BroomwagonError) => ({ cancelled: false, reason: code, answers: [] }));
    expect([reply.cancelled, reply.reason]).toEqual([expected.cancelled, expected.reason]);
    pair.compareAnswers(reply.answers, expected.answers);
  }),
);
