import type { TailPolicy } from '@broomwagon/contracts';
import { ServerStore } from '@broomwagon/state';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { CoordinatorFixture, groups } from '../coordinator.fixture';

const TOKENS = 100;
const NEEDED = 40;
const POLICY: TailPolicy = { name: 'resume', overProvision: 1.5, overProvisionMode: 'adaptive' };
const job = 'job';

let fixture: CoordinatorFixture;
beforeAll(async () => {
  fixture = await CoordinatorFixture.start(1);
});
afterAll(() => fixture.stop());

it('bounds an adaptive over-provision by the KV caches that all engines report', async () => {
  const servers = new ServerStore(fixture.runner);
  const engine = (serverId: string) =>
    servers.register(fixture.pool, {
      serverId,
      instanceId: serverId,
      endpoint: `http://${serverId}:8000`,
      dialect: 'vllm',
      probe: false,
      maxInflight: 8,
      weight: 1,
      weightVersion: 0,
    });
  const report = async (serverId: string, kvTokens: number) => {
    const { epoch } = (await servers.list(fixture.pool)).servers.find((one) => one.serverId === serverId)!;
    await servers.reportLoads(fixture.pool, { reports: [{ serverId, epoch, running: 0, waiting: 0, kvTokens }] });
  };
  const choice = async (policy = POLICY) => {
    const terms = { job, groupsPerStep: NEEDED, remainingGroups: 500, policy };
    const plan = await fixture.call('round.next', terms);
    const { overProvision, domains } = plan.choice!;
    return { overProvision, limitedBy: domains!['']!.why.limitedBy };
  };

  const opened = await fixture.open(job, { groupsPerStep: NEEDED, remainingGroups: 500, policy: POLICY });
  const round = { job, roundId: opened.roundId, trainerEpoch: opened.trainerEpoch };
  await fixture.call('round.submit', { ...round, groups: groups(opened.plan.newGroups, 0, 1) });
  const worker = await fixture.worker('w');
  for (const claim of (await worker.claim(128)).slice(0, NEEDED)) await worker.complete(claim, TOKENS);
  await fixture.close(round);

  expect((await choice()).limitedBy).not.toBe('kv');
  await engine('a');
  await engine('b');
  await report('a', NEEDED * TOKENS);
  // The other engine reports nothing.
  expect((await choice()).limitedBy).not.toBe('kv');
  await report('b', 0.2 * NEEDED * TOKENS);
  expect(await choice()).toEqual({ overProvision: 1.2, limitedBy: 'kv' });
  expect(await choice({ ...POLICY, fleetKvTokens: 1.1 * NEEDED * TOKENS })).toEqual({
    overProvision: 1.1,
    limitedBy: 'kv',
  });
});
