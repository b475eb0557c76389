import { type AbortRequestsRequest, eventSubject, buildRequestId, workerCommandSubject } from '@broomwagon/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dataSet, findFaults } from './system/data-set';
import { TestSystem } from './system/test-system';

const JOB = 'run 42/lr=1e-5 @α #3';
const WORKER = 'w=1@host#/é';
const SERVERS = ['_gpu 0/#=', 'gpu@1=ß'];
const GROUPS = ['_x', 'a/b', 'a=b c', '#1 @ {2}', '🚀, 1;2', 'train/12|~'];
const PROMPTS = dataSet(GROUPS.length, 2).map((prompt, index) => ({ ...prompt, id: GROUPS[index]! }));
/** Responses that do not end within the test. */
const LONG = Array.from({ length: 4 }, (_, index) => ({
  ...PROMPTS[0]!,
  id: `long/=${index}`,
  prompt: { text: `Count from ${index}` },
  lengths: [100_000],
}));
/** A character of an id as the services encode it. No id of this file has such a text itself. */
const ENCODED = /%[0-9A-F]{2}/;
/** References of payloads. Encoded ids are allowed there, because references are opaque. */
const REFERENCES = /(?:redis|file)~[^"\s,]+/g;

let system: TestSystem;
const sent: unknown[] = [];
beforeAll(async () => {
  const environment = { LOG_LEVEL: 'debug' };
  system = await TestSystem.start({ workers: 0, prompts: [...PROMPTS, ...LONG], environment });
  for (const subject of [eventSubject(system.pool, '>'), workerCommandSubject(system.pool, WORKER, 'abort')]) {
    system.client.messaging.subscribe(subject, (body) => void sent.push(body));
  }
  const { servers } = await system.call('server.list', {});
  for (const [index, { serverId, endpoint }] of servers.entries()) {
    await system.call('server.remove', { serverId });
    const server = { serverId: SERVERS[index]!, endpoint, dialect: 'vllm' as const, model: 'simulated' };
    await system.call('server.register', { ...server, instanceId: 'i 1/=', maxInflight: 256 });
  }
  await system.startApp('worker', 'worker-1', { WORKER_ID: WORKER });
});
afterAll(() => system?.stop());

/** Texts of replies, events and commands that hold ids as the services store them. */
function encodedTexts(value: unknown, name = ''): string[] {
  if (typeof value === 'string') return !/ref$/i.test(name) && ENCODED.test(value) ? [value] : [];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([field, part]) => [...encodedTexts(field), ...encodedTexts(part, field)]);
}

const abort = (body: Omit<AbortRequestsRequest, 'abortId'>) =>
  system.call('request.abort', { abortId: `abort/= ${JSON.stringify(body)}`.slice(0, 100), waitMs: 5_000, ...body });

describe('ids that trainers use', () => {
  it('go through rounds with a real worker, and come back as they were', async () => {
    const { lines } = await system.train(JOB, PROMPTS, { groupsPerStep: 3, policy: 'resume' });
    expect(findFaults(JOB, PROMPTS, lines)).toEqual([]);
    const serverIds = new Set(lines.flatMap(({ segments }) => segments.map(({ serverId }) => serverId)));
    expect(SERVERS).toEqual(expect.arrayContaining([...serverIds]));
    expect((await system.call('job.list', {})).jobs).toEqual([JOB]);
    const { workers } = await system.call('worker.list', {});
    expect(workers.map(({ workerId }) => workerId)).toEqual([WORKER]);
  });

  it('select the requests of an abort: ids of a server, worker, round and session', async () => {
    const job = 'aborts/ =#';
    const roundId = 'round 1/=';
    const policy = { name: 'wait', overProvision: 1 } as const;
    const count = LONG.length;
    const plan = await system.call('round.next', { job, groupsPerStep: count, remainingGroups: count, policy });
    const { kind, ...terms } = plan;
    if (kind === 'done') throw new Error('Nothing to train');
    const { trainerEpoch } = await system.call('round.open', { job, roundId, kind, policy, ...terms });
    const by = { serverId: SERVERS, workerId: [WORKER], roundId: [roundId] };
    for (const [index, [field, values]] of Object.entries(by).entries()) {
      const { id: groupId, prompt } = LONG[index]!;
      const groups = [{ groupId, samples: 1, maxTokens: 100_000, prompt }];
      await system.call('round.submit', { job, roundId, trainerEpoch, groups });
      await expect.poll(async () => (await system.runningRequests()).length).toBe(1);
      const pages = await Promise.all(
        values.map((value) => abort({ [field]: value, ...(field === 'roundId' && { job }) })),
      );
      const results = pages.flatMap((page) => page.results);
      expect(results).toContainEqual(
        expect.objectContaining({ requestId: buildRequestId(job, groupId, 0), outcome: 'aborted' }),
      );
      await expect.poll(() => system.runningRequests()).toEqual([]);
    }
    const register = { workerId: 'router=#', registrationId: 'r/ 1' };
    const { workerEpoch } = await system.call('worker.register', register);
    const [requestId, sessionId] = ['turn 7/=', 'session/# =é'];
    const acquire = { acquireId: 'a/=1', requestId, sessionId, workerId: 'router=#', workerEpoch };
    const { leaseId, serverId } = await system.call('lb.acquire', acquire);
    expect(SERVERS).toContain(serverId);
    expect((await abort({ sessionId, waitMs: 0 })).results).toMatchObject([{ requestId, outcome: 'aborting' }]);
    await system.call('lb.release', { leaseId, outcome: 'failed' });
    const next = system.call('round.next', { job, groupsPerStep: count, remainingGroups: count, policy });
    const message = expect.stringContaining(roundId) as string;
    await expect(next).rejects.toMatchObject({ code: 'ROUND_CONFLICT', details: { roundId }, message });
    // The ledgers of jobs with an open round are read for the metrics.
    await expect.poll(() => system.metrics('trainer-coordinator-1')).toContain(`training_job="${job}"`);
    await system.call('round.cancel', { job, roundId, trainerEpoch, mode: 'drop' });
  });

  it('name a change of weights that is rolled back', async () => {
    const syncId = 'sync/ 1=';
    await system.call('weights.begin', { syncId, version: 7, mode: 'abort' });
    const rolledBack = await system.call('weights.rollback', { syncId });
    expect(rolledBack).toMatchObject({ syncId, state: 'rolled-back' });
    sent.push(rolledBack, await system.call('weights.status', { syncId }));
  });

  it('stand in logs, events and metrics as they were written', async () => {
    const { servers } = await system.call('server.list', {});
    const { serverId, epoch } = servers.find((server) => server.serverId === SERVERS[0])!;
    await system.call('server.fence', { serverId, epoch, reason: 'test' });
    system.process('worker-1').kill('SIGKILL');
    expect(await system.metrics('trainer-coordinator-1')).not.toMatch(ENCODED);
    expect(await system.metrics('load-balancer-1')).not.toMatch(ENCODED);
    await system.call('job.delete', { job: JOB, force: true });
    const logs = async () => (await system.logs(10_000)).replaceAll(REFERENCES, '');
    const balancer = () => system.process('load-balancer-1').logTail(10_000);
    for (const id of [WORKER, SERVERS[0]!]) await expect.poll(balancer).toContain(id);
    await expect.poll(logs).toContain(JOB);
    const types = () => new Set(sent.map((one) => (one as { type?: string }).type));
    for (const type of ['round.opened', 'round.closed', 'group.dropped']) await expect.poll(types).toContain(type);
    expect(encodedTexts(sent)).toEqual([]);
    const leaks = (await logs()).split('\n').filter((line) => ENCODED.test(line));
    expect(leaks).toEqual([]);
  });
});
