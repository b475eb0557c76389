import { execFile } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { hashOfToken } from '@broomwagon/state';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { examplePrompts, startExampleTrainer } from './set-back/trainers';
import { RestrictedServers } from './system/restricted-servers';
import { TestSystem } from './system/test-system';

const PROMPTS = 4;
const SAMPLES = 2;
const ADMIN_TOKEN = 'token-of-the-tests';

let servers: RestrictedServers;
let system: TestSystem;
beforeAll(async () => {
  servers = await RestrictedServers.start();
  system = await TestSystem.start({
    workers: 1,
    prompts: examplePrompts(PROMPTS, SAMPLES),
    redisUrl: servers.redisUrl('admin'),
    nats: servers.natsConfig('gateway'),
    keyPrefix: 'rollout',
    getEnvironment: (app) => servers.getEnvironment(app),
    environment: { REDIS_KEY_PREFIX: 'rollout', ADMIN_TOKEN_SHA256: hashOfToken(ADMIN_TOKEN) },
  });
  await Promise.all([system.startApp('gateway', 'gateway-1'), system.startApp('admin-api', 'admin-api-1')]);
});
afterAll(async () => {
  await system?.stop();
  await servers?.stop();
});

async function call(url: string, token: string, body?: object, more: RequestInit = {}): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...more.headers };
  const init = { method: body ? 'POST' : 'GET', body: body && JSON.stringify(body), ...more, headers };
  const response = await fetch(url, init);
  expect([url, response.ok, response.status]).toEqual([url, true, expect.any(Number)]);
  return response;
}
const admin = (path: string, body?: object, more?: RequestInit) =>
  call(`http://127.0.0.1:${system.port('admin-api-1')}/api/v1${path}`, ADMIN_TOKEN, body, more);

async function trainOverNats(): Promise<void> {
  const out = mkdtempSync(join(system.folder, 'trainer-'));
  const settings = { job: 'j', prompts: PROMPTS, groups: PROMPTS, samples: SAMPLES };
  const trainer = await startExampleTrainer(system, out, settings, servers.getEnvironment('trainer'));
  expect([(await trainer.exited).code, await trainer.logTail(5)]).toEqual([0, expect.stringContaining('stepsTrained')]);
}

/** Generates a response in a recorded session, with an id of the client, so that its tokens are saved. */
async function generateOverHttp(): Promise<void> {
  const url = `http://127.0.0.1:${system.port('gateway-1')}`;
  const { token } = (await (await admin('/tokens', { name: 'client', role: 'trainer' })).json()) as { token: string };
  const headers = {
    'x-session-id': 's',
    'x-broomwagon-trajectory': 'record',
    'x-broomwagon-job': 'j',
    'x-request-id': 'own',
  };
  const body = { model: 'simulated', prompt: [1, 2, 3], max_tokens: 300, stream: true };
  const reply = await call(`${url}/v1/completions`, token, body, { headers });
  expect(await reply.text()).toContain('[DONE]');
  const trajectory = await (await call(`${url}/sessions/s/trajectory`, token)).json();
  expect(trajectory).toMatchObject({ branches: [{ turns: [{ id: expect.any(String) as string }] }], missing: [] });
  await call(`${url}/rounds/v1/${system.pool}/job.status`, token, { job: 'j' });
}

async function administer(): Promise<void> {
  const pool = `/pools/${system.pool}`;
  for (const path of ['/pools', pool, `${pool}/audit`, `${pool}/jobs/j/frontier`]) await admin(path);
  const change = { method: 'PATCH', headers: { 'idempotency-key': 'k' } };
  for (let times = 0; times < 2; times++) await admin(`${pool}/config`, { decisionSampleEvery: 77 }, change);
  await admin(`${pool}/log-level`, { level: 'warn' }, { method: 'PUT' });
  const { entries } = (await (await admin('/audit-log')).json()) as { entries: object[] };
  expect(entries.length).toBeGreaterThan(2);
  // The stream itself does not end.
  const init = { headers: { 'last-event-id': '1' }, signal: AbortSignal.timeout(60_000) };
  const events = await admin(`${pool}/events`, undefined, init);
  let text = '';
  for await (const bytes of events.body!) {
    text += Buffer.from(bytes).toString();
    if (text.includes(':live')) break;
  }
  expect(text).toContain('round.completed');
}

async function audit(): Promise<string> {
  const program = ['dist/apps/load-balancer/src/audit.cli.js', '--pool', system.pool];
  const env = { ...process.env, ...servers.getEnvironment('auditor'), REDIS_KEY_PREFIX: 'rollout' };
  return (await promisify(execFile)(process.execPath, program, { env })).stdout;
}

it('all services, a trainer, a client of the gateway and an operator need no more than their users may do', async () => {
  await trainOverNats();
  await generateOverHttp();
  await administer();
  await system.expectAtRest();
  expect(await audit()).toContain('the counts balance');

  await system.process('worker-1').stop(10_000);
  const redis = new Redis(servers.redisUrl('admin'));
  expect(await redis.call('ACL', 'LOG')).toEqual([]);
  redis.disconnect();
  expect(servers.natsLog()).not.toMatch(/violation/i);
});
