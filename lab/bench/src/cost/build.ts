import { readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { newEpoch } from '@broomwagon/contracts';
import { roundTerms } from '@broomwagon/policies';
import type * as State from '@broomwagon/state';
import type { AcquireEntry, LeaseStore, RequestStore, RoundStore, ServerRegistration } from '@broomwagon/state';
import type { Redis } from 'ioredis';
import { fillPool, LONG_MS, type Stores } from '../fill-pool';
import type { BenchWorker } from '../generator/jobs';

const POLICY = { name: 'resume', overProvision: 0, shortfall: 'accept-fewer' } as const;
export const LABELS = { rack: 'r1' };

type AnyState = typeof State & {
  /** Name of the runner in builds before Redis Functions. */
  ScriptRunner?: typeof State.FunctionRunner;
  /** The store of leases, servers and workers, in builds that had one store for all of them. */
  RoutingStore?: new (runner: State.FunctionRunner) => LeaseStore & {
    registerServer(pool: string, server: object): ReturnType<State.ServerStore['register']>;
    registerWorker(pool: string, worker: object): ReturnType<State.WorkerStore['register']>;
  };
};

/** Loads a module of a build that is known at run time only. */
function required<T>(module: string): T {
  // eslint-disable-next-line @typescript-eslint/no-require-imports
  return require(module) as T;
}

/** The state library of a built checkout on a Redis. */
export class Build {
  readonly leases: LeaseStore;
  readonly rounds: RoundStore;
  readonly requests: RequestStore;
  private readonly workers = new Map<string, BenchWorker[]>();
  private readonly stores: Stores;
  private last = 0;

  /** Folder with the compiled programs of the build. */
  readonly folder: string;
  private readonly state: AnyState;

  /** @param checkout folder in which `npm run build` was run */
  constructor(
    checkout: string,
    readonly redis: Redis,
    private readonly prefix: string,
  ) {
    this.folder = join(resolve(checkout), 'dist');
    const state: AnyState = required(join(this.folder, 'libs/state/src'));
    this.state = state;
    const runner = new (state.ScriptRunner ?? state.FunctionRunner)(redis, prefix);
    const old = state.RoutingStore && new state.RoutingStore(runner);
    this.leases = old ?? new state.LeaseStore(runner);
    this.stores = old
      ? {
          servers: {
            register: (pool, { labels, ...server }) =>
              old.registerServer(pool, { ...server, labels: JSON.stringify(labels) }),
          },
          workers: { register: (pool, worker) => old.registerWorker(pool, worker) },
        }
      : { servers: new state.ServerStore(runner), workers: new state.WorkerStore(runner) };
    this.rounds = new state.RoundStore(runner);
    this.requests = new state.RequestStore(runner);
  }

  /**
   * Loads the scripts of a build that is older than Redis Functions, except the scripts that only operators run: a
   * Redis that has served the build for a while has them loaded, and each loaded script costs the garbage collector of
   * Lua time in every call. The library of a later build is loaded by its first call.
   */
  async loadScripts(): Promise<void> {
    if (!this.state.ScriptRunner) return;
    const { LUA_ROOT, loadScript } = this.loader();
    const files = readdirSync(LUA_ROOT, { recursive: true, encoding: 'utf8' });
    for (const file of files.filter((name) => /^(?!audit|checkpoints|inspection)(?!.*includes).*[.]lua$/.test(name))) {
      await this.redis.script('LOAD', loadScript(LUA_ROOT, file.slice(0, -'.lua'.length)));
    }
  }

  private loader(): { LUA_ROOT: string; loadScript: (root: string, name: string) => string } {
    const scripts = join(this.folder, 'libs/state/src/scripts');
    return { ...required(join(scripts, 'script-loader')), ...required(join(scripts, 'script-runner')) };
  }

  /** Fills a pool with servers that have room for all leases, and with eight workers. */
  async fill(
    pool: string,
    servers: number,
    fields: Partial<ServerRegistration> = { weightVersion: 1, labels: LABELS },
  ): Promise<BenchWorker[]> {
    const workers = await fillPool(this.stores, pool, servers, 8, fields);
    this.workers.set(pool, workers);
    return workers;
  }

  nextId(): string {
    return `id-${(this.last++).toString(36)}`;
  }

  worker(pool: string, index: number): BenchWorker {
    const workers = this.workers.get(pool)!;
    return workers[index % workers.length]!;
  }

  /** New acquires of all workers in turn. */
  entries(pool: string, count: number, request: (index: number) => Partial<AcquireEntry>): AcquireEntry[] {
    return Array.from({ length: count }, (_, index) => ({
      acquireId: this.nextId(),
      requestId: `job/group-${index}/0`,
      ...request(index),
      ...this.worker(pool, index),
    }));
  }

  /** Admits sessions of a pool by KV memory, which has room for all sessions. To be called before its servers exist. */
  async admitByKv(pool: string): Promise<void> {
    const settings = { sessionAdmission: 'kv', sessionKvTokens: 1e12, policy: 'least-kv' };
    await this.redis.hset(`${this.prefix}:{${pool}}:settings`, settings);
  }

  /** Opens a round with so many groups, whose samples are all pending. @returns its job */
  async openRound(pool: string, groups: number, samples: number): Promise<string> {
    const job = `job-${this.nextId()}`;
    const plan = { kind: 'short' as const, neededGroups: groups, takeGroups: 0, newGroups: groups };
    const { trainerEpoch } = await this.rounds.open(pool, {
      ...roundTerms(POLICY, plan, {}),
      ...plan,
      job,
      roundId: 'r1',
      planId: newEpoch(),
      step: 1,
      policy: POLICY,
      weightVersion: 0,
      orphanAfterMs: LONG_MS,
    });
    for (let first = 0; first < groups; first += 32) {
      const page = Array.from({ length: Math.min(32, groups - first) }, (_, offset) => ({
        groupId: `${job}-${first + offset}`,
        digest: 'digest',
        samples,
        maxTokens: 1_000,
        promptRef: 'p'.repeat(128),
        sampling: '{"temperature":1}',
      }));
      await this.rounds.submit(pool, { job, roundId: 'r1', trainerEpoch }, page);
    }
    return job;
  }
}
