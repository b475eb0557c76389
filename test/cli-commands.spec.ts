import type { Epoch } from '@broomwagon/contracts';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AdminApi } from './system/admin-api';
import { CommandLine } from './system/command-line';
import { fillPool } from './system/filled-pool';
import { ServiceBench } from './system/service-bench';

let bench: ServiceBench;
let api: AdminApi;
let cli: CommandLine;
let workerEpoch: Epoch;

beforeAll(async () => {
  bench = await ServiceBench.open({ logLevel: 'silent' }, 1);
  api = await AdminApi.start(bench.prefix);
  ({ workerEpoch } = await fillPool(bench));
  cli = new CommandLine(['--url', api.url, '--token', api.rootToken, '--pool', bench.pool]);
});
afterAll(async () => {
  await api?.close();
  await bench?.close();
});

describe('a server', () => {
  it('shows what runs on it, with the requests and tokens of rounds', async () => {
    const { client, pool } = bench;
    const holder = { workerId: 'w', workerEpoch };
    const { claims } = await client.call(pool, 'request.claim', { ...holder, claimId: 'c', max: 1 });
    const { requestId, attempt } = claims[0]!;
    const acquire = { acquireId: 'of-round', requestId, attempt, ...holder, waitMs: 10_000 };
    const { leaseId } = await client.call(pool, 'lb.acquire', acquire);
    expect(await cli.json('servers running s1')).toMatchObject({
      serverId: 's1',
      state: 'ready',
      inflight: 2,
      calls: expect.arrayContaining([
        { leaseId: '1.a', requestId: 'r', workerId: 'w', sessionId: 's', ageMs: expect.any(Number) },
        {
          leaseId,
          requestId,
          workerId: 'w',
          ageMs: expect.any(Number),
          job: 'job',
          roundId: 'r1',
          state: 'claimed',
          tokenCount: 0,
          failures: 0,
        },
      ]),
    });
    const { stdout } = await cli.run('servers running s1');
    expect(stdout).toMatch(/^serverId +s1\nstate +ready\ninflight +2\n\nREQUEST +AGE +STATE +TOKENS /);
    expect(stdout).toMatch(new RegExp(`^${requestId} +\\S+ +claimed +0 +0 +r1 +w$`, 'm'));
    expect((await cli.json('servers running s1 --limit 1')).calls).toHaveLength(1);
    expect((await cli.run('servers running s9')).stderr).toMatch(/^error: SERVER_NOT_FOUND/);
  });

  it('is reconciled', async () => {
    const { leases, holders } = await cli.json('servers reconcile s1');
    expect([leases, holders]).toEqual([2, [expect.objectContaining({ workerId: 'w' })]]);
    expect((await cli.run('servers reconcile s1')).stdout).toMatch(/^leases +2$[^]*\n\nHOLDERS\n.*WORKERID/m);
  });
});

it('leases are listed, shown and released', async () => {
  expect((await cli.run('leases')).stdout).toMatch(/^LEASE +REQUEST +SERVER +WORKER .*\n[^]*^1\.a +r +s1 +w +s +\d/m);
  expect((await cli.json('leases list --worker w --limit 1')).leases).toHaveLength(1);
  expect((await cli.json('leases --server s1')).leases).toHaveLength(2);
  expect((await cli.run('leases --server s1 --worker w')).exitCode).toBe(2);
  const { stdout: lease } = await cli.run('leases get 1.a');
  expect([/^leaseId +1\.a$/m, /^age +\d/m].filter((line) => !line.test(lease))).toEqual([]);
  expect((await cli.run('leases release 1.a')).exitCode).toBe(2);
  expect(await cli.run('leases release 1.a', 'y')).toMatchObject({ exitCode: 0, stdout: '1.a: released\n' });
  expect(await cli.run('leases release 1.a --yes')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/was not released/),
  });
});

it('sessions are listed, finished and cleared', async () => {
  expect((await cli.run('sessions')).stdout).toMatch(/^SESSION +SERVER +LEASES .*\ns +s1 +0 /);
  expect((await cli.json('sessions --server s9')).sessions).toEqual([]);
  expect((await cli.run('sessions finish nobody')).stderr).toBe('error: there is no session nobody\n');
  expect((await cli.run('sessions clear')).exitCode).toBe(2);
  expect((await cli.run('sessions clear', 'y')).stdout).toBe(`${bench.pool}: 1 sessions cleared\n`);
});

it('jobs are listed, shown and given a quota; rounds show their groups and their timeline', async () => {
  expect((await cli.run('jobs')).stdout).toMatch(/^JOB +STEPS TRAINED +ROUND .*\njob +0 +r1 +3 +1 +0$/m);
  const { stdout: job } = await cli.run('jobs get job');
  expect([/^openRoundId +r1$/m, /^requests\.pending +3$/m].filter((line) => !line.test(job))).toEqual([]);
  expect((await cli.run('jobs get nobody')).stderr).toMatch(/^error: JOB_NOT_FOUND/);
  expect((await cli.json('jobs quota job')).quota).toEqual({ weight: 1 });
  expect((await cli.json('jobs quota job --max-in-flight 7')).quota).toEqual({ weight: 1, maxInFlight: 7 });
  expect((await cli.run('jobs quota job --weight 2 --if-version 99')).stderr).toMatch(/^error: VERSION_MISMATCH/);
  expect((await cli.run('jobs ledger job')).stdout).toMatch(/^summary\./m);
  expect((await cli.run('jobs snapshots job')).stdout).toBe('(none)\n');
  expect((await cli.run('rounds groups r1')).stdout).toMatch(/^GROUP +STATE .*\ng0 +live +2 +0\/2 /);
  expect((await cli.json('rounds groups r1 --set accepted')).groups).toEqual([]);
  await expect
    .poll(async () => (await cli.run('rounds timeline r1')).stdout)
    .toMatch(/^\d{4}-\S+Z round\.opened .*roundId="r1"/m);
  expect((await cli.json('rounds timeline r1 --limit 1')).events).toHaveLength(1);
});

it('pools are listed, and one is deleted only by its name', async () => {
  expect((await cli.run('pools')).stdout).toContain(bench.pool);
  expect((await cli.run('pools delete another --yes')).stderr).toMatch(/^error: --pool is .*, not another/);
  expect((await cli.run(`pools delete ${bench.pool} --yes`)).stderr).toMatch(/^error: POOL_IN_USE/);
});

it('weights are changed by hand, and the settings show who has set what', async () => {
  expect((await cli.run('weights begin x --yes')).exitCode).toBe(2);
  expect(await cli.json('weights begin 3 --mode keep --id y')).toMatchObject({ syncId: 'y', state: 'begun' });
  expect((await cli.run('weights')).stdout).toMatch(/^sync\.state +begun$[^]*^s1 +\S+ +0 +1 +NO$/m);
  expect(await cli.json('weights rollback y')).toMatchObject({ state: 'rolled-back' });
  expect((await cli.run('weights status --id y')).stdout).toMatch(/^sync\.state +rolled-back$/m);

  await cli.json('config patch maxSessions=7');
  await expect
    .poll(async () => (await cli.json('config get')).changes)
    .toMatchObject({ maxSessions: { actor: 'ADMIN_TOKEN_SHA256', atMs: expect.any(Number) } });
  const { stdout } = await cli.run('config get');
  expect(stdout).toMatch(/^maxSessions +7 +200000 +yes +ADMIN_TOKEN_SHA256 +\d{4}-\S+Z$/m);
  expect(stdout).toMatch(/^breakerFailures +5 +5 +- +- +-$/m);
  const viewer = new CommandLine(['--url', api.url, '--token', await api.createToken('viewer'), '--pool', bench.pool]);
  expect((await viewer.run('config get')).stdout).toMatch(/^maxSessions +7 +200000 +yes +- +-$[^]*needs the role/m);
});

it('workers are listed, and one that is gone is ended', async () => {
  expect((await cli.run('workers')).stdout).toMatch(/^WORKER +STATE +LEASES +REQUESTS .*\nw +live +1 +1 /);
  expect((await cli.run('workers deregister nobody --yes')).stderr).toBe('error: there is no worker nobody\n');
  expect(await cli.run('workers deregister w', 'y')).toMatchObject({ exitCode: 0, stdout: 'w: deregistered\n' });
  expect((await cli.json('workers')).workers).toEqual([]);
});
