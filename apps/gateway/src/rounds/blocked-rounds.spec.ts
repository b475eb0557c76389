import { beforeEach, expect, it } from 'vitest';
import { useGateway } from '../../../../test/system/gateway-bench';

const JOB = { job: 'job', roundId: 'r1' };
const POLICY = { name: 'wait' };
const GROUPS = [{ groupId: 'g0', samples: 1, maxTokens: 50, prompt: { text: 'g0' } }];

const system = useGateway(4, { dialect: 'vllm', tokens: 20, speed: 20 });
let { bench, gateway } = system;
beforeEach(() => {
  ({ bench, gateway } = system);
});

async function call(operation: string, body: object): Promise<Record<string, never>> {
  const reply = await gateway.post(`/rounds/v1/${bench.pool}/${operation}`, body);
  expect(reply).toMatchObject({ status: 200 });
  return reply.body as Record<string, never>;
}
const blocked = async (): Promise<{ code: string } | undefined> => (await call('round.status', JOB)).blockedReason;

async function openRound(workerKind?: string): Promise<void> {
  const { kind, ...plan } = await call('round.next', {
    job: JOB.job,
    groupsPerStep: 1,
    remainingGroups: 1,
    policy: POLICY,
  });
  const opening = { ...JOB, ...plan, stamp: undefined, kind, policy: POLICY, workerKind };
  const { trainerEpoch } = await call('round.open', opening);
  await call('round.submit', { ...JOB, trainerEpoch, groups: GROUPS });
}

it('reports over HTTP that no worker of the kind of a round claims', async () => {
  await openRound('agent');
  await bench.startWorker();
  const reason = { code: 'NO_WORKER_AVAILABLE', reason: 'no-worker-of-kind', workerKind: 'agent', workerKinds: [''] };
  await expect.poll(blocked).toMatchObject(reason);
});

it('reports over HTTP that a load outlived its deadline, until the version of the servers is committed', async () => {
  const report = () => bench.client.call(bench.pool, 'server.update', { serverId: 's1', weightVersion: 1 });
  await openRound();
  await call('weights.begin', { syncId: 'late', version: 1, mode: 'abort', deadlineMs: 1_000 });
  await expect.poll(blocked).toMatchObject({ code: 'NO_SERVER_AVAILABLE', reason: 'weights-unknown' });
  await report();
  expect(await blocked()).toMatchObject({ code: 'NO_SERVER_AVAILABLE', reason: 'weights-differ' });
  const late = await gateway.post(`/rounds/v1/${bench.pool}/weights.commit`, { syncId: 'late' });
  expect(late.body.error).toMatchObject({ code: 'WEIGHT_SYNC_ENDED' });
  await call('weights.begin', { syncId: 'again', version: 1, mode: 'abort' });
  await report();
  await call('weights.commit', { syncId: 'again' });
  // The load-balancer moves servers to their new states in its own time. No worker is there to claim the request.
  await expect.poll(async () => (await blocked())?.code).not.toBe('NO_SERVER_AVAILABLE');
});
