import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { Controller, Injectable, Logger, Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { Ctx, MessagePattern, Payload } from '@nestjs/microservices';
import { BroomwagonError } from '@broomwagon/contracts';
import { connectNats, ContractPipe, MessageContext, MessagingClient, PARKED } from '@broomwagon/messaging';
import { FaultyLink, requestRaw, startNats, testNatsUrl, testPool } from '@broomwagon/testing';
import { IsInt, IsOptional } from 'class-validator';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { Env } from '../configuration/env.decorator';
import { loadConfig } from '../configuration/load-config';
import { ServiceConfig } from '../configuration/service.config';
import { HealthRegistry } from '../health/health-registry';
import { bootstrapService, runService, type RunningService } from './bootstrap';

class CounterConfig extends ServiceConfig {
  @Env('STEP', 'step of the counter') step: number = 2;
}
class CountRequest {
  @IsInt() by!: number;
  @IsOptional() @IsInt() holdMs?: number;
}

/** A whole small app, made like the apps in apps/. */
@Injectable()
class CounterService implements OnModuleInit, OnApplicationShutdown {
  static order: string[] = [];
  static hang: Promise<void> | undefined;
  redisIsUp = true;
  begun = 0;
  total = 0;
  constructor(
    private readonly config: CounterConfig,
    private readonly health: HealthRegistry,
  ) {}
  onModuleInit(): void {
    this.health.addReadiness('redis', () => (this.redisIsUp ? Promise.resolve() : new Promise(() => undefined)), 50);
  }
  async count(request: CountRequest): Promise<number> {
    this.begun++;
    await new Promise((resolve) => setTimeout(resolve, request.holdMs ?? 0));
    this.total += request.by * this.config.step;
    CounterService.order.push('handled');
    return this.total;
  }
  async onApplicationShutdown(): Promise<void> {
    CounterService.order.push('onApplicationShutdown');
    await CounterService.hang;
  }
}
@Controller()
class CounterController {
  static parkedFor: string | undefined;
  constructor(
    private readonly counter: CounterService,
    private readonly client: MessagingClient,
  ) {}
  @MessagePattern('rollout.v1.*.counter.count')
  async count(@Payload(new ContractPipe(CountRequest)) request: CountRequest): Promise<object> {
    return { total: await this.counter.count(request) };
  }
  @MessagePattern('rollout.v1.*.counter.wait')
  wait(@Ctx() context: MessageContext): typeof PARKED {
    CounterController.parkedFor = context.replyTo;
    return PARKED;
  }
  @MessagePattern('rollout.v1.*.counter.grant')
  grant(): object {
    this.client.reply(CounterController.parkedFor as string, { granted: true });
    return {};
  }
  @MessagePattern('rollout.v1.*.counter.break')
  breakDown(): never {
    throw new Error('cannot reach redis://user:hunter2@host');
  }
}
@Module({ controllers: [CounterController], providers: [CounterService] })
class CounterModule {}

describe('bootstrapService', () => {
  const { pool } = testPool();
  const readyFile = join(mkdtempSync(join(tmpdir(), 'broomwagon-ready-')), 'ready.json');
  const logs: string[] = [];
  const logDestination = { write: (line: string) => void logs.push(line) };
  let service: RunningService<CounterConfig>;
  let client: MessagingClient;

  beforeAll(async () => {
    const env = { NATS_URL: testNatsUrl(), POOLS: pool, MAX_IN_FLIGHT: '2', STEP: '3', READY_FILE: readyFile };
    const config = loadConfig(CounterConfig, { env });
    service = await bootstrapService(CounterModule, { app: 'counter', config, logDestination });
    client = new MessagingClient(await connectNats({ url: testNatsUrl() }));
  });
  afterAll(async () => {
    await service.close();
    await client.connection.close();
  });

  const subject = (operation: string): string => `rollout.v1.${pool}.counter.${operation}`;
  const get = async (path: string): Promise<{ status: number; body: string }> => {
    const response = await fetch(`http://127.0.0.1:${service.httpPort}/${path}`);
    return { status: response.status, body: await response.text() };
  };

  it('writes where it listens to the log and to the ready file', () => {
    expect(JSON.parse(readFileSync(readyFile, 'utf8'))).toEqual({ port: service.httpPort, pid: process.pid });
    expect(existsSync(`${readyFile}.tmp`)).toBe(false);
    const listening = logs.map((line) => JSON.parse(line) as { msg: string }).find(({ msg }) => msg === 'listening');
    expect(listening).toMatchObject({ httpPort: service.httpPort, pools: [pool], name: 'counter' });
  });

  it('is live, ready and started', async () => {
    for (const path of ['livez', 'readyz', 'startupz']) {
      expect(await get(path)).toMatchObject({ status: 200 });
    }
    expect((await get('nothing')).status).toBe(404);
  });

  it.runIf(process.platform === 'linux')('keeps thousands of connections waiting while it is busy', async () => {
    const room = Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8'));
    const done = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT));
    const clients = `
      const { done, port, count } = require('node:worker_threads').workerData;
      const sockets = Array.from({ length: count }, () =>
        new Promise((connected) => require('node:net').connect(port, '127.0.0.1', connected)));
      Promise.all(sockets).then(() => {
        Atomics.store(done, 0, 1);
        Atomics.notify(done, 0);
      });`;
    const workerData = { done, port: service.httpPort, count: Math.min(2_000, room) };
    const worker = new Worker(clients, { eval: true, workerData });
    // The service is in this thread, so that it accepts nothing until all clients are connected or the time is over.
    Atomics.wait(done, 0, 0, 60_000);
    expect(done[0]).toBe(1);
    await worker.terminate();
    // On a slow machine the wait counts as a lag of the event loop, for ten seconds.
    await expect.poll(async () => (await get('livez')).status).toBe(200);
  });

  it('is not ready while a dependency does not answer, but stays live', async () => {
    const counter = service.application.get(CounterService);
    counter.redisIsUp = false;
    const { status, body } = await get('readyz');
    expect(status).toBe(503);
    expect(JSON.parse(body)).toMatchObject({ error: { redis: { status: 'down', reason: 'no answer within 50 ms' } } });
    expect((await get('livez')).status).toBe(200);
    const { body: page } = await get('metrics');
    expect(page).toContain('broomwagon_ready{check="redis",app="counter"} 0');
    expect(page).toContain('broomwagon_ready{check="nats",app="counter"} 1');
    counter.redisIsUp = true;
    expect((await get('readyz')).status).toBe(200);
    expect((await get('metrics')).body).toContain('broomwagon_ready{check="redis",app="counter"} 1');
  });

  it('serves requests with its own configuration, checked bodies and typed errors', async () => {
    await expect(client.request(subject('count'), { by: 1 })).resolves.toEqual({ total: 3 });
    await expect(client.request(subject('count'), { by: 'x' })).rejects.toMatchObject({ field: 'by' });
    const answer = await requestRaw(client.connection.nats, subject('count'), '{"by":');
    expect(answer.json()).toMatchObject({ error: { code: 'MALFORMED_JSON' } });
  });

  it('parks a call and answers it when it is granted', async () => {
    const waiting = client.request(subject('wait'), {});
    await expect.poll(() => CounterController.parkedFor).toBeDefined();
    await client.request(subject('grant'), {});
    await expect(waiting).resolves.toEqual({ granted: true });
  });

  it('sheds above MAX_IN_FLIGHT', async () => {
    const burst = Array.from({ length: 20 }, () => client.request(subject('count'), { by: 0, holdMs: 500 }));
    const settled = await Promise.allSettled(burst);
    const refused = settled.filter((one) => one.status === 'rejected').map((one) => one.reason as BroomwagonError);
    expect(refused.length).toBeGreaterThanOrEqual(10);
    expect(new Set(refused.map((error) => error.code))).toEqual(new Set(['OVERLOADED']));
  });

  it('logs a defect under the id the caller got, without credentials', async () => {
    const failure = await client.request(subject('break'), {}).catch((error: unknown) => error as BroomwagonError);
    const { referenceId } = (failure as BroomwagonError).details as { referenceId: string };
    const line = logs.find((entry) => entry.includes(referenceId));
    expect(line).toContain('cannot reach redis://***@host');
    expect(logs.join('')).not.toContain('hunter2');
    new Logger('spec').warn({ password: 'hunter2', url: 'nats://a:hunter2@b' }, 'to nats://a:hunter2@b');
    expect(logs.at(-1)).toContain('nats://***@b');
    const ofRedis = Object.assign(new Error('OOM'), { command: { name: 'hset', args: ['key', 'hunter2'] } });
    new Logger('spec').error({ err: ofRedis }, 'Redis refused');
    expect(JSON.parse(logs.at(-1)!)).toMatchObject({ err: { message: 'OOM', command: 'hset' } });
    expect(logs.join('')).not.toContain('hunter2');
  });

  it('exposes metrics of messages and of the process', async () => {
    const { body } = await get('metrics');
    expect(body).toMatch(
      /broomwagon_messages_handled_total\{subject="rollout\.v1\.\*\.counter\.count",outcome="OK",app="counter"\} \d/,
    );
    expect(body).toContain('process_resident_memory_bytes');
  });

  it('is not ready while NATS holds bytes back, but stays live, and shows a foreign stream in its readiness', async () => {
    const nats = new URL(testNatsUrl());
    const link = await FaultyLink.start(Number(nats.port));
    nats.host = `127.0.0.1:${link.port}`;
    const env = { NATS_URL: nats.href, POOLS: `${pool}-held` };
    const held = await bootstrapService(CounterModule, {
      app: 'counter',
      config: loadConfig(CounterConfig, { env }),
      logDestination,
    });
    const check = async (path: string) => {
      const response = await fetch(`http://127.0.0.1:${held.httpPort}/${path}`);
      return { status: response.status, text: await response.text() };
    };
    try {
      expect((await check('readyz')).status).toBe(200);
      link.hold();
      const { status, text } = await check('readyz');
      expect(status).toBe(503);
      expect(JSON.parse(text)).toMatchObject({ error: { nats: { reason: 'no answer within 500 ms' } } });
      expect((await check('livez')).status).toBe(200);
      link.release();
      await expect.poll(() => check('readyz')).toMatchObject({ status: 200 });
      vi.spyOn(held.application.get(HealthRegistry)['connection'], 'warning').mockReturnValue(
        'a foreign stream answers',
      );
      const warned = await check('readyz');
      expect(warned.status).toBe(200);
      expect(warned.text).toContain('a foreign stream answers');
    } finally {
      await held.close();
      await link.stop();
    }
  });

  it('refuses to start when an app does not answer its own operations, and leaves nothing open', async () => {
    const config = loadConfig(ServiceConfig, { env: { NATS_URL: testNatsUrl(), POOLS: pool } });
    const attempt = bootstrapService(CounterModule, { app: 'load-balancer', config, logDestination });
    await expect(attempt).rejects.toThrow();
  });

  it('shuts down gracefully: messages in hand are answered, then onApplicationShutdown', async () => {
    const counter = service.application.get(CounterService);
    CounterService.order = [];
    const { begun } = counter;
    const inHand = client.request(subject('count'), { by: 1, holdMs: 500 });
    await expect.poll(() => counter.begun).toBe(begun + 1);
    const closing = service.close();
    await expect(inHand).resolves.toMatchObject({ total: expect.any(Number) as number });
    await closing;
    expect(CounterService.order).toEqual(['handled', 'onApplicationShutdown']);
    await expect(client.request(subject('count'), { by: 1 })).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    await expect(get('livez')).rejects.toThrow();
  });

  it('has one deadline for the whole shutdown, whatever hangs', async () => {
    const env = { NATS_URL: testNatsUrl(), POOLS: `${pool}-late`, SHUTDOWN_TIMEOUT_MS: '100' };
    const config = loadConfig(CounterConfig, { env });
    let releaseHang = (): void => undefined;
    let onShutdownDeadline = (): void => undefined;
    CounterService.hang = new Promise((resolve) => (releaseHang = resolve));
    const late = new Promise<void>((resolve) => (onShutdownDeadline = resolve));
    const other = await bootstrapService(CounterModule, { app: 'c', config, logDestination, onShutdownDeadline });
    const closing = other.close();
    await late;
    expect(logs.at(-1)).toContain('took longer than 100 ms');
    releaseHang();
    await closing;
  });

  it('ends the process with 1 and a fatal line when NATS keeps refusing the password of its environment', async () => {
    let server = await startNats({ user: 'service', password: 'before' });
    const { port, url } = server;
    const config = loadConfig(CounterConfig, { env: { NATS_URL: url, POOLS: pool } });
    const natsConfig = { ...config.natsConfig(), explainEveryMs: 100 };
    vi.spyOn(config, 'natsConfig').mockReturnValue(natsConfig);
    const exit = vi.spyOn(process, 'exit').mockImplementation(() => undefined as never);
    await runService(CounterModule, { app: 'counter', config, logDestination });
    await server.stop();
    server = await startNats({ user: 'service', password: 'after', port });
    await expect.poll(() => exit.mock.calls).toEqual([[1]]);
    const messages = logs.map((line) => JSON.parse(line) as { level: string; msg: string });
    const fatal = messages.find(({ msg }) => msg.startsWith('This process ends, since only a restart helps: '));
    expect(fatal).toMatchObject({
      level: 'fatal',
      msg: expect.stringContaining('NATS_USER and NATS_PASSWORD') as string,
    });
    exit.mockRestore();
    await server.stop();
  });
});
