import type { AttemptRun, Claim, Epoch, MoveTimes } from '@broomwagon/contracts';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { AbortStore } from '../aborts/abort.store';
import { PromptMemoryStore } from '../ledger/prompt-memory.store';
import { buildSegment, TestPools } from '../rounds/test-pools.fixture';
import { MoveStore } from './move.store';
import type { KeptMove } from './move.store';

const test = new TestPools();
const { redis, runner, rounds, requests, leases, workers, servers } = test;
const moves = new MoveStore(runner);
const aborts = new AbortStore(runner);
const prompts = new PromptMemoryStore(runner);
const FIRST = 'job/g0/0';
const SECOND = 'job/g1/0';
let pool: string;
let holder: { workerId: string; workerEpoch: Epoch };

beforeEach(async () => {
  await test.fresh();
  ({ pool, holder } = test);
  for (const serverId of ['a', 'b']) await server(serverId);
  const policy = { name: 'resume' as const, overProvision: 2 };
  await test.open({ policy, neededGroups: 1, newGroups: 2, samples: 1, maxTokens: 100 });
});
afterAll(() => test.close());

const server = (serverId: string, maxInflight = 2) =>
  servers.register(pool, {
    serverId,
    endpoint: 'http://e',
    dialect: 'vllm',
    probe: false,
    instanceId: 'i',
    maxInflight,
    weight: 1,
    weightVersion: 1,
  });
const claim = (max = 1) => test.claim(max);
/** Claims a request, acquires a lease for it on `serverId`, and reports that it runs there. */
async function runOn(serverId = 'a') {
  const claimed = (await claim())[0]!;
  const item = {
    acquireId: test.unique('q'),
    requestId: claimed.requestId,
    boundServerId: serverId,
    contextTokens: 30,
  };
  const { results } = await leases.acquire(pool, [{ ...item, ...holder }]);
  expect(results[0]).toMatchObject({ serverId });
  await requests.save(pool, { ...test.fence(claimed), tokens: 0, serverId });
  return claimed;
}
async function execute(list: KeptMove[], planId = test.unique('plan'), maxMovesPerRequest = 2) {
  await moves.save(pool, { planId, moves: list, summary: '{}', digest: '', keptMs: 60_000 });
  const page = await moves.send(pool, { planId, maxMovesPerRequest, keptMs: 60_000 });
  return { planId, page };
}
async function readStates(planId: string) {
  const { page } = await moves.status(pool, { planId, cursor: 0, limit: 128 });
  return page.map(({ state }) => state);
}
const counts = () => test.states();

describe('a move', () => {
  it('stops a running request with its tokens, and binds the next attempt to the target', async () => {
    const claimed = await runOn();
    await test.save(claimed, 3);
    const { planId, page } = await execute([{ requestId: FIRST, attempt: claimed.attempt, toServerId: 'b' }]);
    expect(page).toMatchObject({
      aborts: [{ requestId: FIRST, attempt: claimed.attempt, ...holder }],
      refused: 0,
      more: false,
    });
    expect(await readStates(planId)).toEqual(['sent']);
    expect(await counts()).toMatchObject({ cutting: 1, pending: 1 });
    expect(await requests.save(pool, { ...test.fence(claimed), tokens: 0 })).toMatchObject({ action: 'abort' });

    const ended = await test.fail(claimed, 5);
    expect(ended.state).toBe('pending');
    expect(await readStates(planId)).toEqual(['moved']);
    const [next] = await claim();
    expect(next).toMatchObject({
      requestId: FIRST,
      attempt: expect.stringMatching(/^2-/) as string,
      roundId: 'r1',
      boundServerId: 'b',
      segments: [{ tokenCount: 5 }],
    });
    // The binding is for one attempt. If it fails, the next attempt goes to any server with room.
    await test.fail(next!, 0, { countsAsFailure: true, retryable: true });
    expect((await claim())[0]).not.toHaveProperty('boundServerId');
  });

  it('gets its times with the first token on the new server, but only if the bound attempt generates one', async () => {
    const run = (leasedMs: number, firstTokenMs?: number) => ({
      serverId: 'b',
      weightVersion: 1,
      leasedMs,
      endedMs: 90,
      ...(firstTokenMs !== undefined && { firstTokenMs }),
    });
    const said = (claimed: Claim, times: AttemptRun) =>
      requests.save(pool, { ...test.fence(claimed), tokens: 0, serverId: 'b', run: times });
    const readDetail = async (planId: string) => {
      const [state, times] = (await readStates(planId))[0]!.split(/:(.*)/s);
      expect(state).toBe('moved');
      return times === undefined ? undefined : (JSON.parse(times) as MoveTimes);
    };
    const claimed = await runOn();
    const { planId } = await execute([{ requestId: FIRST, toServerId: 'b' }]);
    await test.fail(claimed, 5);
    const [next] = await claim();
    expect(await said(next!, run(20))).toEqual({ action: 'continue', savedTokens: 0 });
    expect(await readDetail(planId)).toBeUndefined();
    const times = { stopMs: expect.any(Number) as number, placeMs: expect.any(Number) as number };
    const expected = { ...times, resumeMs: 20, firstTokenMs: 30 };
    expect(await said(next!, run(20, 50))).toEqual({ action: 'continue', savedTokens: 0, moveTimes: expected });
    expect(await readDetail(planId)).toEqual(expected);
    expect(await said(next!, run(20, 50))).toEqual({ action: 'continue', savedTokens: 0 });

    // The attempt ended before its first token, so the next attempt is no move.
    const late = await execute([{ requestId: FIRST, toServerId: 'a' }]);
    await test.fail(next!);
    const [third] = await claim();
    await test.fail(third!, 0, { countsAsFailure: true, retryable: true });
    const [fourth] = await claim();
    expect(await said(fourth!, run(1, 2))).toEqual({ action: 'continue', savedTokens: 0 });
    expect(await readDetail(late.planId)).toBeUndefined();

    // A request that no worker ran has nothing to stop. Its completion reports the times as a save does.
    const other = await execute([{ requestId: SECOND, toServerId: 'b' }]);
    const [bound] = await claim();
    const segment = buildSegment(bound!, 4);
    const done = await requests.complete(pool, {
      ...test.fence(bound!),
      ...segment,
      finishReason: 'stop',
      run: run(1, 7),
    });
    expect(done.moveTimes).toMatchObject({ stopMs: 0, resumeMs: 1, firstTokenMs: 6 });
    expect(await readDetail(other.planId)).toEqual(done.moveTimes);
  });

  it('is sent once, repeated until it is confirmed, and identified by its planId', async () => {
    await runOn();
    const { planId } = await execute([{ requestId: FIRST, toServerId: 'b' }]);
    const again = await moves.send(pool, { planId, maxMovesPerRequest: 2, keptMs: 60_000 });
    expect(again).toMatchObject({ aborts: [], more: false });
    for (const repeat of [1, 2]) {
      const page = await moves.repeat(pool, { cursor: 0, deadlineMs: 60_000 });
      expect(page, `repeat ${repeat}`).toMatchObject({ aborts: [{ requestId: FIRST }], expired: 0 });
    }
    const other = { planId, moves: [], summary: '{}', digest: 'other', keptMs: 60_000 };
    await expect(moves.save(pool, other)).rejects.toMatchObject({ code: 'VALIDATION_FAILED', field: 'planId' });
    await expect(moves.status(pool, { planId: 'nobody', cursor: 0, limit: 1 })).rejects.toMatchObject({
      code: 'PLAN_NOT_FOUND',
    });
  });

  it('does not move a request that finishes first', async () => {
    const claimed = await runOn();
    const { planId } = await execute([{ requestId: FIRST, toServerId: 'b' }]);
    const done = await test.complete(claimed, 4);
    expect(done).toMatchObject({ state: 'finished', groupAccepted: true, roundId: 'r1' });
    expect(await readStates(planId)).toEqual(['completed-first']);
    expect(await rounds.due(pool)).toMatchObject({ moving: 0 });
    const late = await execute([{ requestId: FIRST, toServerId: 'b' }]);
    expect(await readStates(late.planId)).toEqual(['completed-first']);
  });

  it('only binds a request that no worker runs', async () => {
    const { planId, page } = await execute([{ requestId: SECOND, attempt: '0', toServerId: 'b' }]);
    expect(page).toMatchObject({ aborts: [], pending: true });
    expect(await readStates(planId)).toEqual(['moved']);
    expect((await claim(2)).map(({ boundServerId }) => boundServerId)).toEqual([undefined, 'b']);
  });

  it('is superseded by an abort before or after its confirmation', async () => {
    const claimed = await runOn();
    const { planId } = await execute([{ requestId: FIRST, toServerId: 'b' }]);
    await aborts.begin(pool, { abortId: 'x', selector: { requestIds: [FIRST] }, reason: 'test', keptMs: 60_000 });
    await aborts.select(pool, { abortId: 'x' });
    const ended = await test.fail(claimed);
    expect(ended.state).toBe('dropped');
    expect(await readStates(planId)).toEqual(['superseded']);

    const second = await runOn();
    const other = await execute([{ requestId: SECOND, toServerId: 'b' }]);
    await test.fail(second);
    await aborts.begin(pool, { abortId: 'y', selector: { job: 'job' }, reason: 'test', keptMs: 60_000 });
    expect(await claim()).toEqual([]);
    expect(await readStates(other.planId)).toEqual(['moved']);
    expect(await counts()).toMatchObject({ dropped: 2, cutting: 0, pending: 0 });
    expect(await redis.hexists(test.key(`request:${SECOND}`), 'boundServerId')).toBe(0);
  });

  it('is done when its holder dies, and is given up when a live holder does not confirm', async () => {
    const claimed = await runOn();
    const { planId } = await execute([{ requestId: FIRST, toServerId: 'b' }]);
    expect(await moves.repeat(pool, { cursor: 0, deadlineMs: -1 })).toMatchObject({ expired: 1, aborts: [] });
    expect(await readStates(planId)).toEqual(['expired']);
    expect(await requests.save(pool, { ...test.fence(claimed), tokens: 0 })).toMatchObject({ action: 'continue' });

    const again = await execute([{ requestId: FIRST, toServerId: 'b' }]);
    await workers.register(pool, { workerId: 'w', registrationId: 'new', ttlMs: 600_000 });
    expect(await moves.repeat(pool, { cursor: 0, deadlineMs: 60_000 })).toMatchObject({ pending: 1 });
    expect(await readStates(again.planId)).toEqual(['moved']);
    expect(await counts()).toMatchObject({ cutting: 0, pending: 2 });
  });

  it('is refused with a reason, without effect on other moves of the plan', async () => {
    const refusal = async (move: Partial<KeptMove>, maxMoves = 2) => {
      const { planId } = await execute([{ requestId: FIRST, toServerId: 'b', ...move }], undefined, maxMoves);
      return readStates(planId);
    };
    await runOn();
    expect(await refusal({ requestId: 'job/none/0' })).toEqual(['refused:unknown-request']);
    expect(await refusal({ attempt: '7-a' })).toEqual(['refused:victim-changed']);
    expect(await refusal({ toServerId: 'a' })).toEqual(['refused:same-server']);
    expect(await refusal({ toServerId: 'of-another-pool' })).toEqual(['refused:server-not-found']);
    expect(await refusal({ toEpoch: 'e99' })).toEqual(['refused:server-changed']);
    expect(await refusal({}, 0)).toEqual(['refused:moved-too-often']);
    await servers.cordon(pool, { serverId: 'b', cordoned: true });
    expect(await refusal({})).toEqual(['refused:server-cordoned']);
    await servers.cordon(pool, { serverId: 'b', cordoned: false });
    await servers.update(pool, { serverId: 'b', maxInflight: 1 });
    const { planId, page } = await execute([
      { requestId: FIRST, toServerId: 'b' },
      { requestId: SECOND, toServerId: 'b' },
    ]);
    expect(page.refused).toBe(1);
    expect((await moves.status(pool, { planId, cursor: 0, limit: 1 })).cursor).toBe(1);
    expect(await readStates(planId)).toEqual(['sent', 'refused:server-full']);
    // The request is being moved.
    expect(await refusal({})).toEqual(['refused:ending']);
    await servers.drain(pool, { serverId: 'b', deadlineMs: 60_000 });
    expect(await refusal({ requestId: SECOND })).toEqual(['refused:server-draining']);
  });

  it('is refused for a sample that was aborted alone, also when its group continues', async () => {
    await test.open({
      job: 'other',
      policy: { name: 'wait', overProvision: 1 },
      neededGroups: 1,
      samples: 2,
      minSamples: 1,
    });
    const id = 'other/g2/0';
    await aborts.begin(pool, {
      abortId: 'x',
      selector: { requestIds: [id], scope: 'sample' },
      reason: 'test',
      keptMs: 60_000,
    });
    await aborts.select(pool, { abortId: 'x' });
    expect(await test.states('other')).toMatchObject({ dropped: 1, pending: 1 });
    const { planId, page } = await execute([{ requestId: id, toServerId: 'b' }]);
    expect(page.aborts).toEqual([]);
    expect(await readStates(planId)).toEqual(['refused:ending']);
    expect(await test.states('other')).toMatchObject({ dropped: 1, cutting: 0 });
  });

  it('of a lease without a request of a round is a transfer by its holder', async () => {
    const { results } = await leases.acquire(pool, [{ acquireId: 'loop', requestId: 'turn', ...holder }]);
    const { seq, serverId } = results[0] as { seq: number; serverId: string };
    const leaseId = `${seq}.loop`;
    const target = serverId === 'a' ? 'b' : 'a';
    const { planId, page } = await execute([
      { leaseId, toServerId: target },
      { leaseId: '9999.none', toServerId: target },
    ]);
    const transfer = { planId, leaseId, ...holder, targetServerId: target };
    expect(page.leases).toEqual([transfer]);
    expect(await readStates(planId)).toEqual(['sent', 'refused:unknown-lease']);
    // The transfer is sent again until the lease has moved, with the id of the latest plan.
    const repeated = (deadlineMs = 60_000) => moves.repeatLeases(pool, { deadlineMs });
    for (const repeat of [1, 2])
      expect(await repeated(), `${repeat}`).toMatchObject({ leases: [transfer], expired: 0 });
    const later = await execute([{ leaseId, toServerId: target }]);
    expect((await repeated()).leases).toEqual([{ ...transfer, planId: later.planId }]);
    expect(await repeated(-1)).toMatchObject({ leases: [], expired: 1 });
    expect(await readStates(later.planId)).toEqual(['expired']);
    expect(await rounds.due(pool)).toMatchObject({ moving: 0 });
    await execute([{ leaseId, toServerId: target }]);
    expect(await rounds.due(pool)).toMatchObject({ moving: 1 });
    await leases.transfer(pool, { transferId: 't', acquireId: 'loop', targetServerId: target, ...holder });
    expect((await readStates(planId))[0]).toBe('moved');
    expect(await repeated()).toMatchObject({ leases: [], expired: 0 });
    expect(await rounds.due(pool)).toMatchObject({ moving: 0 });
    await leases.release(pool, [{ acquireId: 'loop' }]);
    expect((await readStates(planId))[0]).toBe('completed-first');
  });
});

it('reads running calls for a plan', async () => {
  const claimed = await runOn();
  await test.save(claimed, 7);
  await leases.acquire(pool, [{ acquireId: 'loop', requestId: 'turn', contextTokens: 500, ...holder }]);
  expect(await moves.calls(pool)).toEqual({
    running: [
      expect.objectContaining({
        requestId: FIRST,
        serverId: 'a',
        attempt: claimed.attempt,
        contextTokens: 30,
        heldTokens: 0,
        madeTokens: 7,
        maxTokens: 100,
        longestTokens: 0,
        samples: 1,
        moves: 0,
        waits: false,
      }),
    ],
    others: [{ serverId: 'b', epoch: expect.any(String) as string, contextTokens: 500 }],
  });
  expect(await moves.settings(pool, { turnMs: 60_000 })).toEqual({ turn: true });
  expect(await moves.settings(pool, { turnMs: 60_000 })).toEqual({});
  const planned = await moves.settings(pool, { isPlanned: true });
  expect(planned).toEqual({ plannedAtMs: expect.any(Number) as number });
  expect(await moves.settings(pool, { turnMs: 60_000 })).toEqual(planned);
});

it('reads the known lengths of the prompt of a request, and whether its engine sends no token', async () => {
  const hash = 'ab'.repeat(8);
  await prompts.remember(pool, [{ hash, lengths: [40, 40], atCap: false }]);
  const policy = { name: 'resume' as const, overProvision: 1 };
  await test.open({
    job: 'other',
    policy,
    neededGroups: 1,
    newGroups: 1,
    samples: 1,
    maxTokens: 100,
    promptHash: hash,
  });
  const claims = await claim(3);
  for (const { requestId, attempt } of claims) {
    await leases.acquire(pool, [{ acquireId: `of ${requestId}`, requestId, ...holder }]);
    await requests.save(pool, {
      requestId,
      attempt,
      ...holder,
      tokens: 0,
      serverId: 'a',
      waiting: requestId === FIRST,
    });
  }
  const known = async () => {
    const { running } = await moves.calls(pool);
    return Object.fromEntries(
      running.map(({ requestId, known, waits }) => [requestId, [known && Math.exp(known.meanLog), waits]]),
    );
  };
  expect(await known()).toEqual({
    [FIRST]: [undefined, true],
    [SECOND]: [undefined, false],
    'other/g2/0': [expect.closeTo(40, 1), false],
  });
  await requests.save(pool, { ...test.fence(claims[0]!), tokens: 0, serverId: 'a' });
  expect((await known())[FIRST]).toEqual([undefined, false]);
});
