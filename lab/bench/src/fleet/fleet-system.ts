import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connectNats, MessagingClient, TypedClient } from '@broomwagon/messaging';
import type { Redis } from 'ioredis';
import { readRegistration } from '../../../../libs/engines/src/detect-engine';
import type { Child } from '../child';
import type { Stage } from '../stage';
import type { DirectAnswer, DirectQuestion } from './direct.main';
import type { EngineCounts, EngineQuestion } from './engine.main';
import { Processes } from './processes';
import type { TrainerAnswer, TrainerQuestion } from './trainer.main';

/** Pool of the worker and the gateway, and pool of the workers that save often and never. */
export const POOLS = { fleet: 'fleet', saved: 'saved', unsaved: 'unsaved' } as const;
const SAVE_ENGINES = 4;
const MAX_INFLIGHT = 16_384;
const UNTIL_MS = 240_000;
const NEVER_MS = 86_400_000;
/** Descriptors of a process that are no streams. */
const SPARE_FILES = 500;

/** Most requests that a process with one connection for each can hold here: each connection is an open file. */
export function maxConnections(): number {
  const { userLimits } = process.report!.getReport() as { userLimits?: { open_files: { soft: number | string } } };
  const limit = Number(userLimits?.open_files.soft ?? 1_024);
  return (Number.isFinite(limit) ? limit : 65_536) - SPARE_FILES;
}

/** NATS, two Redis, a load-balancer, a coordinator, workers, a gateway, engines and clients, all as processes. */
export class FleetSystem {
  readonly processes = new Processes();

  private constructor(
    readonly engine: Child<EngineQuestion, EngineCounts>,
    readonly trainer: Child<TrainerQuestion, TrainerAnswer>,
    readonly client: Child<DirectQuestion, DirectAnswer>,
    readonly payloads: Redis,
    readonly gatewayUrl: string,
    readonly engineUrls: string[],
    private readonly workers: { fleet: number; saved: number; unsaved: number },
  ) {}

  /** @param saveIntervalMs interval of partial saves in the pool of saves */
  static async start(stage: Stage, engines: number, saveIntervalMs: number): Promise<FleetSystem> {
    const { nats, redis } = stage.services;
    const payloads = await stage.startRedis();
    const pools = Object.values(POOLS);
    const storage = { PAYLOAD_URL: payloads.server.url, PAYLOAD_QUOTA_BYTES: String(64 * 2 ** 30) };
    const collect = `--max-semi-space-size=64 --require ${join(__dirname, '../gateway/collect-garbage.js')}`;
    const startHolder = (app: string, name: string, pool: string, settings: Record<string, string>) =>
      stage.startApp(app, name, [pool], redis, { POOL: pool, NODE_OPTIONS: collect, ...storage, ...settings });
    const startWorker = (pool: keyof typeof POOLS, settings: Record<string, string> = {}) =>
      startHolder('worker', `worker-${pool}`, POOLS[pool], { CONCURRENCY: String(MAX_INFLIGHT), ...settings });
    const [balancer, coordinator, gateway, fleet, saved, unsaved] = await Promise.all([
      stage.startApp('load-balancer', 'balancer', pools, redis, { PROBE_INTERVAL_MS: '2000' }),
      stage.startApp('trainer-coordinator', 'coordinator', pools, redis, storage),
      startHolder('gateway', 'gateway', POOLS.fleet, { API_KEYS: 'off', HTTP_HOST: '127.0.0.1' }),
      startWorker('fleet'),
      startWorker('saved', { PARTIAL_SAVE_INTERVAL_MS: String(saveIntervalMs) }),
      startWorker('unsaved', { PARTIAL_SAVE_INTERVAL_MS: String(NEVER_MS) }),
    ]);
    const engine = stage.child<EngineQuestion, EngineCounts>('fleet/engine.main.js');
    const { ports } = await engine.ask({ kind: 'listen', dialect: 'vllm', engines: engines + SAVE_ENGINES });
    const urls = ports.map((port) => `http://127.0.0.1:${port}`);
    const [saves, urlsOfFleet] = [urls.slice(0, SAVE_ENGINES), urls.slice(SAVE_ENGINES)];
    const connection = await connectNats({ url: nats.url });
    stage.onStop(() => connection.close());
    const calls = new TypedClient(new MessagingClient(connection));
    await register(calls, POOLS.fleet, urlsOfFleet);
    for (const pool of [POOLS.saved, POOLS.unsaved]) await register(calls, pool, saves);
    const trainer = stage.child<TrainerQuestion, TrainerAnswer>('fleet/trainer.main.js');
    await trainer.ask({ kind: 'connect', natsUrl: nats.url });
    const client = stage.child<DirectQuestion, DirectAnswer>('fleet/direct.main.js');
    const gatewayUrl = `http://127.0.0.1:${stage.port('gateway')}`;
    const system = new FleetSystem(engine, trainer, client, payloads.client, gatewayUrl, urlsOfFleet, {
      fleet,
      saved,
      unsaved,
    });
    const ids = { nats: nats.pid, redis: redis.pid, payloads: payloads.server.pid, balancer, coordinator, gateway };
    for (const [part, id] of Object.entries(ids)) {
      if (id !== undefined) system.processes.set(part as keyof typeof ids, id);
    }
    system.processes.set('trainer', trainer.processId);
    system.processes.set('client', client.processId);
    system.count('fleet');
    return system;
  }

  /** Chooses the worker whose CPU time counts. */
  count(pool: keyof typeof POOLS): void {
    this.processes.set('worker', this.workers[pool]);
  }

  /** Waits until the engines answer so many streams. */
  async untilStreams(count: number): Promise<void> {
    const endsAtMs = performance.now() + UNTIL_MS;
    for (let streams = -1; streams !== count; { streams } = await this.engine.ask({ kind: 'counts' })) {
      if (performance.now() > endsAtMs) throw new Error(`The engines have ${streams} streams instead of ${count}`);
      await delay(200);
    }
  }

  /** Bytes that the payload store has received. */
  async storedBytes(): Promise<number> {
    return Number(/total_net_input_bytes:(\d+)/.exec(await this.payloads.info('stats'))![1]);
  }
}

async function register(calls: TypedClient, pool: string, urls: readonly string[]): Promise<void> {
  for (const url of urls) {
    const registration = await readRegistration(url, {});
    await calls.call(pool, 'server.register', { ...registration, maxInflight: MAX_INFLIGHT, weightVersion: 0 });
  }
}
