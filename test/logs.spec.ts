import { randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { LogLevelReply } from '@broomwagon/contracts';
import { isOfForeignStream, requestRaw } from '@broomwagon/testing';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { post } from './system/gateway';
import { TestSystem } from './system/test-system';

/** A text that stands in prompts, payloads and malformed bodies. */
const CANARY = 'canary-5d41402abc4b2a76';
/** Processes that the test starts. */
const SERVICES = 5;

/** An engine that is healthy, refuses every generation and repeats the prompt in its answer, as some validators do. */
async function startRefusingEngine(): Promise<Server> {
  const server = createServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString('utf8');
    if (request.method === 'GET') {
      response.writeHead(200).end('{}');
      return;
    }
    const { prompt, messages } = JSON.parse(body) as { prompt?: string; messages?: object[] };
    response.writeHead(422, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ detail: prompt ?? messages }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

describe('logs', () => {
  let system: TestSystem;
  let engine: Server;

  beforeAll(async () => {
    engine = await startRefusingEngine();
    system = await TestSystem.start({ balancers: 2, workers: 1, engines: 0, environment: { LOG_LEVEL: 'trace' } });
    await system.startApp('gateway', 'gateway-1', { API_KEYS: 'off', LOG_LEVEL: 'trace' });
    const endpoint = `http://127.0.0.1:${(engine.address() as AddressInfo).port}`;
    const server = { serverId: 'refusing', dialect: 'vllm', model: 'm', instanceId: 'first', probe: false } as const;
    await system.call('server.register', { ...server, endpoint, maxInflight: 16, weightVersion: 0 });
  });
  afterAll(async () => {
    await system.stop();
    engine.closeAllConnections();
    engine.close();
  });

  const logText = (): string => {
    const folder = join(system.folder, 'logs');
    return readdirSync(folder)
      .map((file) => readFileSync(join(folder, file), 'utf8'))
      .join('');
  };
  const lines = (message: RegExp): Record<string, unknown>[] =>
    logText()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ msg }) => message.test(String(msg)));

  it('name the request and the round, and contain no payload', async () => {
    const groups = [{ groupId: 'g', prompt: { text: CANARY }, samples: 1, maxTokens: 64 }];
    const policy = { name: 'resume', overProvision: 1 } as const;
    const { roundId } = await system.openRound('job', { groupsPerStep: 1, groups, policy });
    const failed = async () => (await system.call('round.status', { job: 'job', roundId })).lastFailures;
    // The trainer gets the answer of the engine, with its own prompt.
    await expect.poll(failed).toMatchObject([{ message: expect.stringContaining(CANARY) as string }]);
    expect(lines(/^The attempt failed/)).toMatchObject([
      { job: 'job', roundId, requestId: 'job/g/0', attempt: expect.any(String) as string, reason: 'engine-rejected' },
    ]);

    const texts = [
      ['/generate', { text: CANARY, rid: 'r' }],
      ['/v1/completions', { model: 'm', prompt: CANARY, max_tokens: 8 }],
      ['/v1/chat/completions', { model: 'm', messages: [{ role: 'user', content: CANARY }] }],
      ['/v1/messages', { model: 'm', max_tokens: 8, messages: [{ role: 'user', content: CANARY }] }],
      ['/tokenize', { prompt: CANARY }],
      ['/generate', `{"text":"${CANARY}`],
    ] as const;
    for (const [path, body] of texts) {
      const { status } = await post(`http://127.0.0.1:${system.port('gateway-1')}${path}`, body);
      expect(status, path).toBeGreaterThanOrEqual(400);
    }

    const { nats } = system.client.messaging.connection;
    const operations = ['round.submit', 'payload.put', 'lb.acquire', 'request.claim', 'service.log-level'];
    const bodies = [`{"job":"job","prompt":"${CANARY}`, JSON.stringify({ job: CANARY.repeat(20), data: CANARY })];
    for (const operation of operations) {
      for (const body of bodies) {
        const reply = await requestRaw(nats, `rollout.v1.${system.pool}.${operation}`, body);
        expect(reply.json()).toHaveProperty('error');
      }
    }
    expect(logText().length).toBeGreaterThan(1_000);
    expect(logText()).not.toContain(CANARY);
  });

  it('change their level in all replicas, in the replicas of one service, and in one replica', async () => {
    const { nats } = system.client.messaging.connection;
    const setLevel = async (body: object, expected: number): Promise<LogLevelReply[]> => {
      const replies: LogLevelReply[] = [];
      const reply = `_INBOX.${randomUUID()}`;
      const subscription = nats.subscribe(reply, {
        callback: (_, message) => void (isOfForeignStream(message) || replies.push(message.json())),
      });
      nats.publish(`rollout.v1.${system.pool}.service.log-level`, JSON.stringify(body), { reply });
      await expect.poll(() => replies.length).toBe(expected);
      subscription.unsubscribe();
      return replies;
    };
    const configure = (every: number) => system.call('pool.configure', { decisionSampleEvery: every });

    await setLevel({ level: 'error' }, SERVICES);
    const silent = await configure(7);
    const balancers = await setLevel({ level: 'info', app: 'load-balancer' }, 2);
    expect(balancers.map(({ app, level }) => ({ app, level }))).toEqual(
      Array.from({ length: 2 }, () => ({ app: 'load-balancer', level: 'info' })),
    );
    const logged = await configure(8);
    const versions = () => lines(/^Settings of a pool/).map(({ version }) => version);
    await expect.poll(versions).toContain(logged.version);
    expect(versions()).not.toContain(silent.version);

    const { replicaId } = balancers[0]!;
    expect(await setLevel({ level: 'debug', replicaId }, 1)).toEqual([
      { app: 'load-balancer', replicaId, level: 'debug' },
    ]);
  });

  it('are readable lines with LOG_FORMAT=pretty', async () => {
    await system.startApp('load-balancer', 'readable', { LOG_FORMAT: 'pretty', LOG_LEVEL: 'info' });
    await expect
      .poll(() => readFileSync(join(system.folder, 'logs', 'readable.log'), 'utf8'))
      .toMatch(/INFO\S* \(load-balancer\): .*listening/);
  });
});
