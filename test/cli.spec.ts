import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Epoch } from '@broomwagon/contracts';
import { testNatsUrl, testRedisUrl } from '@broomwagon/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createProgram } from '../apps/cli/src/program';
import { AdminApi } from './system/admin-api';
import { CommandLine } from './system/command-line';
import { ServiceBench } from './system/service-bench';

let bench: ServiceBench;
let api: AdminApi;
let cli: CommandLine;
let holder: { workerId: string; workerEpoch: Epoch };

beforeAll(async () => {
  bench = await ServiceBench.open({ logLevel: 'silent' }, 1);
  api = await AdminApi.start(bench.prefix);
  await bench.begin();
  const { client, pool, engine } = bench;
  const server = { endpoint: engine.url, dialect: 'vllm' as const, maxInflight: 64, probe: false };
  await client.call(pool, 'server.register', { ...server, serverId: 's1' });
  await client.call(pool, 'server.register', { ...server, serverId: 's2' });
  await bench.submit(3);
  const workerId = 'w';
  const { workerEpoch } = await client.call(pool, 'worker.register', { workerId, registrationId: 'r', ttlMs: 600_000 });
  holder = { workerId, workerEpoch };
  const acquire = { requestId: 'r', ...holder, waitMs: 10_000 };
  for (const acquireId of ['a1', 'a2']) await client.call(pool, 'lb.acquire', { ...acquire, acquireId, explain: true });
  cli = new CommandLine(['--url', api.url, '--token', api.rootToken, '--pool', pool]);
});
afterAll(async () => {
  await api?.close();
  await bench?.close();
});

it('prints the version of the release', async () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(await cli.run('--version')).toMatchObject({ exitCode: 0, stdout: `${version}\n`, stderr: '' });
});

describe('status', () => {
  it('shows totals, servers and jobs of a pool', async () => {
    const { exitCode, stdout } = await cli.run('status');
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(new RegExp(`^POOL +STATE +SERVERS READY +LEASES .*\n${bench.pool} +running +2/2 +2 `));
    expect(stdout).toMatch(/^s1 +ready +1\/64 /m);
    expect(stdout).toMatch(/^job +0 +r1 \(short, open\) +0\/3 +6 +0 +0$/m);
    expect(await cli.json('status')).toMatchObject({
      pool: bench.pool,
      readyServers: 2,
      perServer: [{ serverId: 's1', inflight: 1 }, { serverId: 's2' }],
      jobs: [{ job: 'job', round: { roundId: 'r1' } }],
    });
  });

  it('shows all pools without --pool', async () => {
    const all = new CommandLine(['--url', api.url, '--token', api.rootToken]);
    expect((await all.run('status')).stdout).toContain(bench.pool);
    const token = await api.createToken('viewer', ['nothing']);
    const none = new CommandLine(['--url', api.url, '--token', token]);
    expect(await none.run('status')).toMatchObject({ exitCode: 0, stdout: '(none)\n' });
    expect(await none.run('servers')).toMatchObject({ exitCode: 2, stderr: 'error: there is no pool\n' });
  });
});

describe('servers', () => {
  it('are listed and shown', async () => {
    expect((await cli.run('servers')).stdout).toMatch(
      /^SERVER +STATE +IN FLIGHT .*\ns1 +ready +1\/64 +- +0 .* vllm\ns2 /,
    );
    expect((await cli.json('servers list')).servers).toMatchObject([{ serverId: 's1' }, { serverId: 's2' }]);
    const { epoch } = await cli.json('servers get s1');
    const signs = { serverId: 's1', epoch, tokens: 200, silentMs: 0, observedStreamInterval: 1 };
    const counts = { leaseCount: 2, leaseDigest: 0, attemptCount: 0 };
    await bench.client.call(bench.pool, 'worker.heartbeat', { ...holder, ...counts, servers: [signs] });
    expect((await cli.run('servers')).stdout).toMatch(/^s1 .* not as asked: 1 /m);
    expect(await cli.json('servers get s1')).toMatchObject({ observedStreamInterval: 1 });
    expect((await cli.run('servers get s1')).stdout).toMatch(/^endpoint +http:/m);
    expect(await cli.json('servers get s1')).toMatchObject({ maxInflight: 64 });
    expect(await cli.run('servers get nobody')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^error: SERVER_NOT_FOUND: .*\n`broomwagon servers` lists/),
    });
  });

  it('are added, patched and removed', async () => {
    const added = await cli.run(
      `servers add s3 ${bench.engine.url} vllm --max-inflight 4 --label zone=1 --label team=a`,
    );
    expect(added).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/^s3: \w+\n$/) });
    expect(await cli.json('servers get s3')).toMatchObject({ maxInflight: 4, labels: { zone: '1', team: 'a' } });
    await cli.json('servers patch s3 --max-inflight 5 --weight 0.5');
    expect(await cli.json('servers get s3')).toMatchObject({ maxInflight: 5, weight: 0.5, labels: { zone: '1' } });
    expect(await cli.run('servers patch s3 --weight -1')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/^error: VALIDATION_FAILED: .*\(field weight\)/),
    });
    expect((await cli.run('servers patch s3')).exitCode).toBe(2);
    expect((await cli.run('servers patch s3 --max-inflight many')).stderr).toMatch(/must be a whole number/);
    expect(await cli.run('servers quarantine s3 --yes')).toMatchObject({ exitCode: 0 });
    expect(await cli.run('servers remove s3')).toMatchObject({ exitCode: 2, stderr: expect.stringMatching(/--yes/) });
    expect(await cli.run('servers remove s3', 'n')).toMatchObject({ exitCode: 1 });
    expect((await cli.json('servers')).servers).toHaveLength(3);
    expect(await cli.run('servers remove s3', 'y')).toMatchObject({ exitCode: 0, stdout: 's3: removed\n' });
    expect(await cli.run('servers remove s3 --yes')).toMatchObject({
      exitCode: 1,
      stderr: 'error: there is no server s3\n',
    });
  });

  it('are cordoned, drained and undrained', async () => {
    expect(await cli.run('cordon s2')).toMatchObject({ exitCode: 0, stdout: 's2: cordoned\n' });
    expect(await cli.json('undrain s2')).toMatchObject({ state: 'ready' });
    expect(await cli.json('drain s2 --deadline 2h')).toMatchObject({ state: 'draining' });
    const { drainUntilMs } = await cli.json('servers get s2');
    expect(drainUntilMs - Date.now()).toBeGreaterThan(3_600_000);
    expect(await cli.run('undrain s2')).toMatchObject({ exitCode: 0, stdout: 's2: ready\n' });
    expect((await cli.run('drain s2 --deadline 5')).exitCode).toBe(2);
    expect((await cli.run('drain s2 --deadline 0s')).stderr).toMatch(/--yes/);
    expect((await cli.run('drain nobody')).exitCode).toBe(1);
  });
});

it('requests are listed, shown and aborted', async () => {
  expect((await cli.run('requests')).stdout).toMatch(/^REQUEST +STATE .*\njob\/g0\/0 +pending +0 /);
  expect((await cli.json('requests --state pending --limit 2')).requests).toHaveLength(2);
  expect((await cli.run('requests get job/g2/0')).stdout).toMatch(/^state +pending$/m);
  expect((await cli.run('requests get job/g9/0')).exitCode).toBe(1);
  expect((await cli.run('abort')).stderr).toMatch(/name requests, or one of --session/);
  expect((await cli.run('abort job/g2/0')).exitCode).toBe(2);
  expect((await cli.run('abort job/g2/0 --server s1 --yes')).stderr).toMatch(/VALIDATION_FAILED/);
  expect((await cli.run('abort job/g2/0 --reason wrong', 'yes')).stdout).toMatch(/^job\/g2\/0 +aborted/m);
  expect(await cli.run('abort job/g9/0 --yes')).toMatchObject({
    exitCode: 1,
    stderr: 'error: there is no request job/g9/0\n',
  });
  expect((await cli.run('abort --job job --group g9 --yes')).exitCode).toBe(1);
  expect((await cli.json('abort --job job --group g2')).results).toMatchObject([
    { outcome: 'aborted' },
    { outcome: 'aborted' },
  ]);
});

it('rounds are listed, shown and cancelled; the long-tail queue is listed, exported and dropped', async () => {
  expect((await cli.run('rounds')).stdout).toMatch(/^JOB +ROUND .*\njob +r1 +1 +short +open +0\/3 /);
  expect((await cli.json('rounds --job job')).rounds).toMatchObject([{ roundId: 'r1' }]);
  expect((await cli.run('rounds get r1')).stdout).toMatch(/^lengthBias +/m);
  expect(await cli.json('rounds get r1 --job job')).toMatchObject({ round: { state: 'open' }, ledger: { alarms: [] } });
  expect(await cli.run('rounds get r7')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/^error: ROUND_/),
  });
  expect((await cli.run('rounds get r1 --job other')).exitCode).toBe(1);
  expect((await cli.run('tail requeue job/g0/0')).exitCode).toBe(2);
  expect((await cli.run('tail requeue job/g9/0 --yes')).stderr).toMatch(/^error: REQUEST_NOT_FOUND/);
  // The request does not run.
  expect(await cli.run('tail requeue job/g0/0', 'y')).toMatchObject({
    exitCode: 1,
    stdout: expect.stringMatching(/^job\/g0\/0 +- +FENCED /m),
  });
  const { client, pool } = bench;
  const { claims } = await client.call(pool, 'request.claim', { ...holder, claimId: 'c', max: 1 });
  const { requestId, attempt } = claims[0]!;
  expect((await cli.json(['tail', 'requeue', requestId])).results).toEqual([{ requestId, state: 'cutting' }]);
  await client.call(pool, 'request.fail', { requestId, attempt, ...holder, reason: 'aborted', retryable: true });
  expect((await cli.run('rounds cancel r1')).exitCode).toBe(2);
  expect((await cli.run('rounds cancel r1 --mode burn --yes')).stderr).toMatch(/Allowed choices are requeue, drop/);
  expect((await cli.run('rounds cancel r1 --reason test', 'y')).stdout).toMatch(/^r1: cancelled, 1 groups/);

  await expect.poll(async () => (await cli.json('tail stats')).groups).toBe(2);
  expect((await cli.run('tail stats')).stdout).toMatch(/^groups +2$/m);
  expect((await cli.run('tail')).stdout).toMatch(/^GROUP +CUTS .*\ng0 +0 +1 +0\/2 +0\n/);
  expect((await cli.json('tail list --limit 1')).groups).toHaveLength(1);
  const lines = (await cli.run('tail export')).stdout.trim().split('\n');
  expect(lines.map((line) => JSON.parse(line).groupId)).toEqual(['g0', 'g1']);
  expect((await cli.run('tail drop g0')).stderr).toMatch(/required option '--reason/);
  expect((await cli.run('tail drop g0 --all --reason x --yes')).exitCode).toBe(2);
  expect(await cli.run('tail drop g0 g9 --reason x', 'y')).toMatchObject({
    exitCode: 1,
    stdout: '1 groups dropped\n',
    stderr: expect.stringMatching(/error: not in the queue: g9\n$/),
  });
  expect(await cli.json('tail drop --all --reason x')).toEqual({ dropped: ['g1'], notQueued: [] });
});

it('a rebalance is planned, applied and shown', async () => {
  expect((await cli.run('rebalance plan --id p1')).stdout).toMatch(/^planId +p1$[^]*\n\n\(none\)\n/m);
  expect(await cli.json('rebalance plan --id p1')).toMatchObject({ planId: 'p1', moves: 0 });
  expect((await cli.run('rebalance apply p1')).exitCode).toBe(2);
  expect(await cli.json('rebalance apply p1')).toMatchObject({ planId: 'p1', sentMoves: 0 });
  expect(await cli.json('rebalance status p1')).toMatchObject({ planId: 'p1', results: [] });
  expect(await cli.run('rebalance status p2')).toMatchObject({ exitCode: 1 });
});

it('settings are read, changed, listed and rolled back; the pool is paused and resumed', async () => {
  const { version } = await cli.json('config get');
  const changed = await cli.run(`config patch policy=least-tokens maxSessions=7 --if-version ${version}`);
  expect(changed.stdout).toMatch(/^maxSessions +7$/m);
  expect(await cli.run(`config patch maxSessions=8 --if-version ${version}`)).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/^error: VERSION_MISMATCH: [^]*`broomwagon config get` shows/),
  });
  expect((await cli.run('config patch colour=red')).stderr).toMatch(/VALIDATION_FAILED: .*\(field colour\)/);
  expect((await cli.run('config patch')).exitCode).toBe(2);
  expect((await cli.run('config patch maxSessions=9 ifVersion=3')).stderr).toMatch(/use --reset or --if-version/);
  expect((await cli.run('config patch maxSessions')).stderr).toMatch(/must be NAME=VALUE/);
  expect((await cli.json('config patch --reset policy')).settings).toMatchObject({ maxSessions: 7 });
  expect((await cli.run('config history')).stdout).toMatch(/^VERSION +SINCE +SETTINGS\n\d+ +2.* \{.*"maxSessions":7/);
  expect((await cli.json(`config rollback ${version}`)).settings).not.toHaveProperty('maxSessions');
  expect((await cli.run('config rollback 999')).stderr).toMatch(/VERSION_NOT_FOUND/);

  expect((await cli.run('pause')).exitCode).toBe(2);
  expect((await cli.run('pause --yes')).stdout).toBe(`${bench.pool}: paused\n`);
  expect(await cli.json('pause')).toEqual({ paused: true, changed: false });
  expect((await cli.run('status')).stdout).toMatch(new RegExp(`^${bench.pool} +PAUSED `, 'm'));
  expect((await cli.run('resume')).stdout).toBe(`${bench.pool}: running\n`);
});

it('events are printed, and followed', async () => {
  await expect
    .poll(async () => (await cli.run('events --type round.opened')).stdout)
    .toMatch(/round.opened .*roundId="r1"/);
  const [line] = (await cli.run('events --json --job job --limit 1')).stdout.split('\n');
  const first = JSON.parse(line!);
  expect(first).toMatchObject({ id: expect.stringMatching(/^\d+$/), event: { pool: bench.pool } });
  const following = cli.run(`events --follow --after ${first.id} --type server.fenced --limit 1 --server s2`);
  await cli.json('servers quarantine s2');
  expect((await following).stdout).toMatch(/server.fenced .*serverId="s2"/);
  expect((await cli.run('events --after x')).stderr).toMatch(/VALIDATION_FAILED: .*\(field Last-Event-ID\)/);
});

it('counts are audited, and changes are listed', async () => {
  expect(await cli.run('audit')).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/All counts are right/) });
  expect(await cli.json('audit')).toMatchObject({ balanced: true });
  await expect
    .poll(async () => (await cli.run('changes --operation server.drain --since 1h')).stdout)
    .toMatch(/ADMIN_TOKEN_SHA256 +configured +admin +server.drain .* done/);
  const { entries } = await cli.json('changes');
  expect((await cli.json('changes --limit 1')).entries).toEqual(entries.slice(-1));
  const [{ actorId }] = entries;
  expect((await cli.run(`changes --actor ${actorId} --limit 1`)).stdout).toMatch(/ ACTOR ID /);
});

it('decisions are listed and replayed', async () => {
  expect((await cli.run('decisions --limit 2')).stdout).toMatch(/^SEQ .*\n\d+ +2\S+ +a2 +s\d +least-inflight /);
  expect((await cli.run('decisions replay')).stdout).toMatch(/ a2 .* same\n.* a1 .* same\n/);
  const { replays } = await cli.json('decisions replay a1');
  expect(replays).toMatchObject([{ acquireId: 'a1', again: { serverId: 's1' }, isSame: true }]);
  expect((await cli.run('decisions replay nobody')).stderr).toMatch(/no decision with a snapshot for nobody/);
});

it('the level of the logs is set in all replicas of a service', async () => {
  // A slow replica may reply too late.
  const apps = async (command: string) =>
    ((await cli.json(command)).replicas as { app: string }[]).map(({ app }) => app).toSorted();
  await expect
    .poll(() => apps('log-level fatal'))
    .toEqual(expect.arrayContaining(['load-balancer', 'trainer-coordinator']));
  await expect.poll(() => apps('log-level fatal --app load-balancer')).toEqual(['load-balancer']);
  const table = async () => (await cli.run('log-level fatal --app load-balancer')).stdout;
  await expect.poll(table).toMatch(/^APP +REPLICAID +LEVEL\nload-balancer/);
  for (const [option, reason] of [
    ['--app Load-Balancer', /^error: REPLICA_NOT_FOUND: .*there are: .*load-balancer.*\(field app\)/],
    ['--replica unknown', /^error: REPLICA_NOT_FOUND: No replica unknown .*\(field replicaId\)/],
  ] as const) {
    const { exitCode, stderr } = await cli.run(`log-level fatal ${option}`);
    expect([exitCode, stderr]).toEqual([1, expect.stringMatching(reason)]);
  }
  expect((await cli.run('log-level loud')).exitCode).toBe(2);
});

it('tokens are made, listed and revoked, by REST and in Redis', async () => {
  const made = await cli.run('tokens create --name me --role viewer --pools a,b --expires 1d --max-generations 3');
  expect(made.stdout).toMatch(/^bw_\S+\n$/);
  const viewer = new CommandLine(['--url', api.url, '--token', made.stdout.trim(), '--pool', 'a']);
  expect(await viewer.run('tokens list')).toMatchObject({
    exitCode: 1,
    stderr: expect.stringMatching(/^error: FORBIDDEN: .*\nUse a token with this role/),
  });
  expect((await cli.run('tokens create --name me --role king')).exitCode).toBe(2);
  expect((await cli.run('tokens')).stdout).toMatch(/ me +viewer +a, b /);
  const { tokens } = await cli.json('tokens list');
  const { tokenId, maxGenerations } = tokens.find(({ name }: { name: string }) => name === 'me');
  expect(maxGenerations).toBe(3);
  expect(await cli.run(`tokens revoke ${tokenId}`, 'y')).toMatchObject({ stdout: `${tokenId}: revoked\n` });
  expect(await cli.run(`tokens revoke ${tokenId} --yes`)).toMatchObject({ exitCode: 1 });
  expect(await cli.json('tokens hash')).toMatchObject({ ADMIN_TOKEN_SHA256: expect.stringMatching(/^[0-9a-f]{64}$/) });

  const shell = spawnSync(
    'scripts/broomwagon.mjs',
    ['tokens', 'create', '--redis', '--name', 'first', '--role', 'admin'],
    {
      encoding: 'utf8',
      env: {
        PATH: process.env.PATH,
        REDIS_URL: testRedisUrl(),
        NATS_URL: testNatsUrl(),
        REDIS_KEY_PREFIX: bench.prefix,
        BROOMWAGON_URL: api.url,
        BROOMWAGON_POOL: bench.pool,
      },
    },
  );
  expect(shell).toMatchObject({ status: 0, stderr: '' });
  expect((await api.send('GET', '/tokens', undefined, { token: shell.stdout.trim() })).status).toBe(200);
});

it('an empty id is refused before any call', async () => {
  const nowhere = new CommandLine(['--url', 'http://127.0.0.1:1', '--token', 'x']);
  for (const [words, reason] of [
    [['servers', 'get', ''], 'serverId is empty'],
    [['servers', 'remove', '', '--yes'], 'serverId is empty'],
    [['status', '--pool', ''], '--pool is empty'],
    [['requests', 'list', '--job', ''], '--job is empty'],
    [['abort', 'job/g0/0', '', '--yes'], 'requestIds is empty'],
    [['log-level', 'info', '--app', ''], '--app is empty'],
    [['tokens', 'create', '--name', 'n', '--role', 'viewer', '--pools', ''], '--pools is empty'],
  ] as const) {
    expect(await nowhere.run(words)).toEqual({ exitCode: 2, stdout: '', stderr: `error: ${reason}\n` });
  }
  const shell = spawnSync('scripts/broomwagon.mjs', ['status', '--token', 'x'], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, BROOMWAGON_POOL: '' },
  });
  expect(shell).toMatchObject({ status: 2, stderr: 'error: BROOMWAGON_POOL is empty: unset it\n' });
});

describe('a wrong call', () => {
  const unreachable = ['--url', 'http://127.0.0.1:1', '--token', 'x'];

  it('prints the error and the next step', async () => {
    expect(await new CommandLine(unreachable).run('status')).toMatchObject({
      exitCode: 3,
      stderr: expect.stringMatching(/^error: UNREACHABLE: .*\nCheck that admin-api runs/),
    });
    const elsewhere = new CommandLine(['--url', `${api.url}/elsewhere`, '--token', api.rootToken]);
    expect((await elsewhere.run('status')).stderr).toMatch(/^error: ROUTE_NOT_FOUND: [^]*without a path/);
    const stranger = new CommandLine(['--url', api.url, '--token', 'x']);
    expect((await stranger.run('status')).stderr).toMatch(/^error: UNAUTHENTICATED: [^]*BROOMWAGON_TOKEN/);
    expect(await new CommandLine(['--url', api.url, '--token', '']).run('status')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/set BROOMWAGON_TOKEN/),
    });
    expect(await new CommandLine(['--url', 'admin-api:8080', '--token', 'x']).run('status')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringMatching(/must be http:/),
    });
    const broken = await new CommandLine(['--url', api.url, '--token', 'secret\nline']).run('status');
    expect([broken.exitCode, broken.stderr]).toEqual([2, expect.not.stringContaining('secret')]);
    const { exitCode, stderr } = await stranger.run('status --json');
    expect([exitCode, JSON.parse(stderr).error]).toMatchObject([1, { code: 'UNAUTHENTICATED', retryable: false }]);
    expect((await cli.run('stauts')).stderr).toMatch(/unknown command 'stauts'[^]*Did you mean status/);
    expect((await cli.run('servers get')).exitCode).toBe(2);
  });

  it('needs no token for the help', async () => {
    const { exitCode, stdout } = await new CommandLine([]).run('--help');
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/Exit codes: 0 done/)]);
    expect((await new CommandLine([]).run('servers add --help')).stdout).toMatch(/--max-inflight/);
  });

  it('from a shell has the exit code and no stack', () => {
    const call = (...words: string[]) =>
      spawnSync('scripts/broomwagon.mjs', words, { encoding: 'utf8', env: { PATH: process.env.PATH } });
    expect(call('status', ...unreachable)).toMatchObject({
      status: 3,
      stdout: '',
      stderr: expect.not.stringMatching(/^ +at /m),
    });
    expect(call('pause', '--pool', 'p', '--token', 'x').status).toBe(2);
  });
});

describe('a reply of another server', () => {
  const EVENT = { type: 'round.opened', pool: 'p', sequence: 1, atMs: 1, roundId: 'r\u009b31m\u001b[31m' };
  const server = createServer(({ url = '' }, response) => {
    if (url.includes('/events')) {
      response.setHeader('Content-Type', 'text/event-stream');
      response.end(`id: 1\ndata: ${JSON.stringify(EVENT)}\n\n:live\n\n`);
    } else if (url.includes('/abort')) {
      setTimeout(() => response.end(JSON.stringify({ abortId: 'a', results: [] })), 400);
    } else if (url.includes('/servers')) {
      response.setHeader('Content-Type', 'application/json');
      response.end(
        JSON.stringify({ servers: [{ serverId: 's1', state: 'ready', inflight: 1, capacity: 2, maxInflight: 2 }] }),
      );
    } else {
      response.writeHead(404, { 'Content-Type': 'application/problem+json' });
      response.end(JSON.stringify({ code: 'JOB_NOT_FOUND', detail: 'no job \u009b31m\u001b[31m', retryable: false }));
    }
  });
  let other: CommandLine;
  beforeAll(async () => {
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const { port } = server.address() as AddressInfo;
    other = new CommandLine(['--url', `http://127.0.0.1:${port}`, '--token', 'x', '--pool', 'p']);
  });
  afterAll(() => void server.close());

  it('is shown as far as it goes: the status fails only for its missing parts', async () => {
    expect(await other.run('status')).toMatchObject({
      exitCode: 1,
      stdout: expect.stringMatching(/^\(no reply: no job .*\n\nSERVER +[^]*\ns1 +ready +1\/2 [^]*\(no reply: /),
      stderr: expect.stringMatching(/^error: JOB_NOT_FOUND: /),
    });
  });

  it('cannot control the terminal', async () => {
    const line = await other.run('events');
    expect(line.stdout).toContain('roundId="r\\u009b31m\\u001b[31m"');
    const json = await other.run('events --json');
    const failure = await other.run('tail --job j');
    expect(failure.stderr).toContain('no job \\u009b31m\\u001b[31m');
    for (const text of [line.stdout, json.stdout, failure.stderr]) expect(text).not.toMatch(/[^\P{Cc}\n]/u);
    expect(JSON.parse(json.stdout).event).toEqual(EVENT);
  });

  it('may take as long as --wait in addition to --timeout', async () => {
    expect(await other.run('abort --all --wait 20s --timeout 200ms --yes')).toMatchObject({
      exitCode: 0,
      stdout: '(none)\n',
    });
  });
});

it('every command has an explanation', () => {
  const program = createProgram(process);
  for (const command of [...program.commands, ...program.commands.flatMap(({ commands }) => commands)]) {
    expect(command.description(), command.name()).not.toBe('');
  }
});
