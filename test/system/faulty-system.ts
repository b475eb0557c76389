import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FaultyLink, freePort, type ServerHandle, startNats, startRedis, waitUntil } from '@broomwagon/testing';
import { expect } from 'vitest';
import { dataSet, findFaults } from './data-set';
import { FakeApiServer } from './fake-api-server';
import { post } from './gateway';
import { TestSystem } from './test-system';

/** Links of each service; all services reach the engines by one link. */
export const LINKS = {
  'load-balancer': ['nats', 'redis', 'engine', 'kubernetes'],
  'trainer-coordinator': ['nats', 'redis', 'payloads'],
  worker: ['nats', 'payloads', 'engine'],
  gateway: ['nats', 'redis', 'payloads', 'engine'],
  'admin-api': ['nats', 'redis'],
} as const;
export type App = keyof typeof LINKS;
export type LinkName = (typeof LINKS)[App][number];

const APPS = Object.keys(LINKS) as App[];
const PROMPTS = dataSet(8, 2, 5);
/** Deadline beyond the longest fault. */
const DEADLINE_MS = 900_000;
/** Setting with the address of each server, and the scheme of the address. */
const SETTINGS = {
  nats: ['NATS_URL', 'nats'],
  redis: ['REDIS_URL', 'redis'],
  payloads: ['PAYLOAD_URL', 'redis'],
  kubernetes: ['K8S_API_URL', 'http'],
} as const;

/** All services with a link of their own to each server, under a load that checks its replies. */
export class FaultySystem {
  system!: TestSystem;
  private readonly links = new Map<string, FaultyLink>();
  private readonly texts = new Map<number, string>();
  private readonly folder = mkdtempSync(join(tmpdir(), 'broomwagon-faulty-'));
  private api: FakeApiServer | undefined;
  private jobs = 0;

  private constructor(
    private readonly nats: ServerHandle,
    private readonly redis: ServerHandle,
    private readonly speed: number,
  ) {}

  /** @param speed simulated seconds in a second: with 20, a job of the load takes some seconds */
  static async start(speed: number): Promise<FaultySystem> {
    const [nats, redis] = await Promise.all([startNats(), startRedis()]);
    const faulty = new FaultySystem(nats, redis, speed);
    try {
      await faulty.open();
      return faulty;
    } catch (error) {
      await faulty.stop();
      throw error;
    }
  }

  link(app: App, name: LinkName): FaultyLink {
    return this.links.get(name === 'engine' ? name : `${app}/${name}`)!;
  }

  async stop(): Promise<void> {
    await this.system?.stop();
    await Promise.all([...this.links.values()].map((link) => link.stop()));
    await Promise.all([this.nats.stop(), this.redis.stop(), this.api?.stop()]);
    rmSync(this.folder, { recursive: true });
  }

  /** Lines of the log of a service about a link. */
  countLines(app: App, name: LinkName, event: 'lost' | 'restored'): number {
    const target = name === 'nats' ? 'NATS at \\S+' : `Redis at \\S+${name === 'payloads' ? ' \\(payloads\\)' : ''}`;
    const text = readFileSync(join(this.system.folder, 'logs', `${app}-1.log`), 'utf8');
    const said = event === 'lost' ? 'Outage begins' : 'Outage has ended';
    return text.match(new RegExp(`${said}: ${target} (?:does not work|works again)`, 'g'))?.length ?? 0;
  }

  /** Resolves when all services are ready and a call through the gateway is answered. */
  async untilWorking(timeoutMs: number): Promise<void> {
    const statuses = () =>
      Promise.all(
        APPS.map(async (app) => {
          const { status } = await fetch(`http://127.0.0.1:${this.system.port(`${app}-1`)}/readyz`);
          return `${app} ${status}`;
        }),
      );
    const expected = APPS.map((app) => `${app} 200`);
    await expect.poll(statuses, { timeout: timeoutMs, interval: 50 }).toEqual(expected);
    await expect.poll(() => this.complete(0, 8), { timeout: timeoutMs, interval: 50 }).toBeDefined();
  }

  /** Trains jobs and calls the gateway until `isOver`, and checks that nothing is lost, doubled or changed. */
  async load(isOver: () => boolean): Promise<void> {
    const train = async () => {
      do {
        const job = `job-${(this.jobs += 1)}`;
        const { lines } = await this.system.train(job, PROMPTS, {
          groupsPerStep: 4,
          policy: 'wait',
          callDeadlineMs: DEADLINE_MS,
        });
        expect(findFaults(job, PROMPTS, lines)).toEqual([]);
      } while (!isOver());
    };
    const call = async (index: number) => {
      do expect(await this.answer(index)).toBe(this.texts.get(index));
      while (!isOver());
    };
    await Promise.all([train(), ...[1, 2, 3].map(call)]);
  }

  private async open(): Promise<void> {
    const engine = await freePort();
    this.links.set('engine', await FaultyLink.start(engine));
    this.api = await FakeApiServer.start(this.link('worker', 'engine').port, this.folder);
    const ports = {
      nats: this.nats.port,
      redis: this.redis.port,
      payloads: this.redis.port,
      kubernetes: this.api.port,
    };
    for (const app of APPS) {
      for (const name of LINKS[app]) {
        if (name !== 'engine') this.links.set(`${app}/${name}`, await FaultyLink.start(ports[name]));
      }
    }
    this.system = await TestSystem.start({
      natsUrl: this.nats.url,
      redisUrl: this.redis.url,
      workers: 1,
      engines: 1,
      enginePort: engine,
      registersEngines: false,
      prompts: PROMPTS,
      speed: this.speed,
      environment: { LOG_LEVEL: 'info', WORKER_TTL_MS: '15000' },
      getEnvironment: (app) => this.settingsFor(app as App),
    });
    await Promise.all([
      this.system.startApp('gateway', 'gateway-1', { API_KEYS: 'off' }),
      this.system.startApp('admin-api', 'admin-api-1'),
    ]);
    await Promise.all([1, 2, 3].map(async (index) => this.texts.set(index, await this.answer(index))));
  }

  private settingsFor(app: App): Record<string, string> {
    const settings: Record<string, string> = {};
    for (const name of LINKS[app]) {
      if (name === 'engine') continue;
      const [variable, scheme] = SETTINGS[name];
      settings[variable] = `${scheme}://127.0.0.1:${this.link(app, name).port}`;
    }
    const discovery = { K8S_LABEL_SELECTOR: 'app=engine', K8S_SERVICE_ACCOUNT_DIR: this.api!.serviceAccountDir };
    return app === 'load-balancer' ? { ...settings, ...discovery } : settings;
  }

  /** The text of an answer to a request, which is repeated until it has one. */
  private async answer(index: number): Promise<string> {
    let text: string | undefined;
    const isAnswered = async () => (text = await this.complete(index, 1_500)) !== undefined;
    await waitUntil(isAnswered, { what: `the answer to client ${index}`, timeoutMs: DEADLINE_MS });
    return text!;
  }

  private async complete(index: number, maxTokens: number): Promise<string | undefined> {
    const url = `http://127.0.0.1:${this.system.port('gateway-1')}/v1/completions`;
    const body = { model: 'simulated', prompt: [index, 7, 9], max_tokens: maxTokens, temperature: 0, seed: index };
    const reply = await post(url, { ...body, ignore_eos: true }).catch(() => undefined);
    if (reply?.status === 200) return (reply.body as { choices: { text: string }[] }).choices[0]!.text;
    if (reply !== undefined) expect([408, 429, 499, 500, 502, 503, 504]).toContain(reply.status);
    return undefined;
  }
}
