import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Epoch,
  type GroupSubmission,
  LIMITS,
  type OperationName,
  type ReplyOf,
  type RequestOf,
  type TailPolicy,
  type TailPolicyName,
} from '@broomwagon/contracts';
import { connectNats, MessagingClient, type NatsConfig, TypedClient } from '@broomwagon/messaging';
import {
  flushPrefix,
  type ManagedProcess,
  ProcessGroup,
  ProtocolCheck,
  readyByFile,
  type ServiceDescription,
  testNatsUrl,
  testPool,
  testRedisUrl,
} from '@broomwagon/testing';
import { expect } from 'vitest';
import { Operations } from '../../lab/reference-trainer/src/loop/operations';
import { TrainerLoop } from '../../lab/reference-trainer/src/loop/trainer-loop';
import type { TrainerLoopHooks } from '../../lab/reference-trainer/src/loop/trainer-loop.types';
import type { StepReport } from '../../lab/reference-trainer/src/loop/step-report';
import type { ResultLine } from '../../lab/reference-trainer/src/results/result-line';
import { RedisView } from './redis-view';
import { lengthsFile, SEED, type TestPrompt } from './data-set';

const CALL_DEADLINE_MS = 30_000;
const REST_TIMEOUT_MS = 20_000;
const RECORD_CALLS = './dist/libs/testing/src/protocol/record-calls.js';
const RECORD_END = '.calls.jsonl';

/** Options of a system: numbers of processes of each kind, and their settings. */
export interface SystemOptions {
  balancers?: number;
  coordinators?: number;
  workers?: number;
  engines?: number;
  /** Port of the first engine; default: a free one. */
  enginePort?: number;
  /** Default: the engines are registered in the pool. */
  registersEngines?: boolean;
  /** Decides the lengths of the simulated responses. */
  prompts?: readonly TestPrompt[];
  /** Simulated seconds per second; default 100, some 6,000 tokens a second of each request. */
  speed?: number;
  /** Addresses of NATS and Redis; default: the servers that all tests share. */
  natsUrl?: string;
  redisUrl?: string;
  /** Connection of the client of the test; default: the address only. */
  nats?: NatsConfig;
  /** Default: the key prefix of the pool. */
  keyPrefix?: string;
  /** Environment of every application. */
  environment?: Record<string, string>;
  /** Environment of each process of one application. */
  getEnvironment?: (app: string) => Record<string, string>;
}

/** Results that one trainer got from a job. */
export interface TrainedJob {
  steps: StepReport[];
  lines: ResultLine[];
}

interface EngineState {
  resumeMismatches: number;
  table: { id: string; state: string }[];
}

/** Short times, so that a fault is over within a test. */
const ENVIRONMENT = {
  LOG_LEVEL: 'warn',
  WORKER_TTL_MS: '1500',
  UNCLAIMED_AFTER_MS: '1500',
  PARTIAL_SAVE_INTERVAL_MS: '150',
  ENGINE_FAILURE_PAUSE_MS: '50',
  PROBE_INTERVAL_MS: '1000',
  DRAIN_MS: '200',
  // A worker notices the loss of a reply only when its wait is over.
  CLAIM_WAIT_MS: '500',
  ACQUIRE_WAIT_MS: '500',
};

/** The whole system as separate processes, with a pool and keys of its own. */
export class TestSystem {
  readonly keyPrefix: string;
  readonly pool: string;
  readonly folder = mkdtempSync(join(tmpdir(), 'broomwagon-test-'));
  private readonly group: ProcessGroup;
  engineUrls: readonly string[] = [];
  readonly redis: RedisView;
  client!: TypedClient;

  private constructor(private readonly options: SystemOptions) {
    ({ pool: this.pool } = testPool());
    this.keyPrefix = options.keyPrefix ?? this.pool;
    this.redis = new RedisView(this.redisUrl, this.keyPrefix, this.pool);
    this.group = new ProcessGroup({
      logFolder: join(this.folder, 'logs'),
      environment: {
        ...ENVIRONMENT,
        NATS_URL: this.natsUrl,
        REDIS_URL: this.redisUrl,
        REDIS_KEY_PREFIX: this.keyPrefix,
        POOLS: this.pool,
        POOL: this.pool,
        ENGINE_POOL: this.pool,
        ...options.environment,
      },
    });
  }

  /** Starts a system. Default: two workers, two engines, and one process of each other kind. */
  static async start(options: SystemOptions = {}): Promise<TestSystem> {
    const system = new TestSystem(options);
    try {
      const { balancers = 1, coordinators = 1, workers = 2, engines = 2 } = options;
      const names = (app: string, count: number) => Array.from({ length: count }, (_, index) => `${app}-${index + 1}`);
      system.client = new TypedClient(new MessagingClient(await connectNats(options.nats ?? { url: system.natsUrl })));
      await Promise.all([
        ...names('load-balancer', balancers).map((name) => system.startApp('load-balancer', name)),
        ...names('trainer-coordinator', coordinators).map((name) => system.startApp('trainer-coordinator', name)),
        engines > 0 ? system.startEngines(engines) : undefined,
      ]);
      if (options.registersEngines ?? true) await system.registerEngines();
      await Promise.all(names('worker', workers).map((name) => system.startApp('worker', name)));
      return system;
    } catch (error) {
      await system.stop();
      throw error;
    }
  }

  get natsUrl(): string {
    return this.options.natsUrl ?? testNatsUrl();
  }

  get redisUrl(): string {
    return this.options.redisUrl ?? testRedisUrl();
  }

  /**
   * Starts one more process of an application and waits until it is ready, or `orElse` is true of it.
   * @param release folder of the built code
   */
  async startApp(
    app: string,
    name: string,
    environment: Record<string, string> = {},
    orElse: (process: ManagedProcess) => boolean = () => false,
    release = 'dist',
  ): Promise<ManagedProcess> {
    const found = readyByFile(join(this.folder, `${name}.json`));
    return this.group.start({
      name,
      command: [process.execPath, '--require', RECORD_CALLS, join(release, 'apps', app, 'src', 'main.js')],
      ready: async (process) => orElse(process) || found.ready(process),
      environment: {
        ...found.environment,
        WORKER_ID: name,
        CALL_RECORDS: this.folder,
        ...this.options.getEnvironment?.(app),
        ...environment,
      },
    });
  }

  /** The process of a name such as `worker-1`, `load-balancer-2`, `trainer-coordinator-1` or `engines`. */
  process(name: string): ManagedProcess {
    return this.group.get(name);
  }

  /** One call, repeated while its error is retryable. */
  call<Name extends OperationName>(operation: Name, body: RequestOf<Name>): Promise<ReplyOf<Name>> {
    return this.client.callWithRetry(this.pool, operation, body, { deadlineMs: CALL_DEADLINE_MS });
  }

  /** Trains a data set with the reference trainer, which uses nothing but the protocol. */
  async train(
    job: string,
    prompts: readonly TestPrompt[],
    settings: {
      groupsPerStep: number;
      policy: TailPolicyName;
      overProvision?: number;
      /** Parameters of the policy. */
      tail?: Omit<TailPolicy, 'name' | 'overProvision'>;
      /** Sampling parameters, beside the seed of all tests. */
      sampling?: { logprobs?: boolean; stop?: string[]; streamInterval?: number };
      /** Time until a call fails, milliseconds. Default 30,000. */
      callDeadlineMs?: number;
      /** Client of the trainer; default: over NATS. */
      client?: ConstructorParameters<typeof Operations>[0];
    } & Pick<TrainerLoopHooks, 'onStatus' | 'setWeightVersion'>,
  ): Promise<TrainedJob> {
    const rounds = new Map<string, readonly ResultLine[]>();
    const {
      groupsPerStep,
      policy,
      tail,
      sampling,
      client = this.client,
      callDeadlineMs = CALL_DEADLINE_MS,
      ...hooks
    } = settings;
    const { overProvision = policy === 'auto' ? undefined : policy === 'wait' ? 1 : 1.5 } = settings;
    const loop = new TrainerLoop(
      new Operations(client, this.pool, { deadlineMs: callDeadlineMs }),
      {
        job,
        prompts,
        samples: prompts[0]!.samples,
        maxTokens: 16_384,
        sampling: { seed: SEED, ...sampling },
        groupsPerStep,
        policy: { name: policy, overProvision, ...tail },
        lookMs: 25,
      },
      { sink: { writeRound: async ({ roundId }, lines) => void rounds.set(roundId, [...lines]) }, ...hooks },
    );
    const steps = await loop.run();
    return { steps, lines: [...rounds.values()].flat() };
  }

  /** Stores a payload over NATS and returns its reference. */
  async putPayload(job: string, requestId: string, name: string, bytes: Buffer): Promise<string> {
    const chunkCount = Math.ceil(bytes.length / LIMITS.payloadChunkBytes);
    let ref: string | undefined;
    for (let chunkIndex = 0; chunkIndex < chunkCount; chunkIndex += 1) {
      const start = chunkIndex * LIMITS.payloadChunkBytes;
      const data = bytes.subarray(start, start + LIMITS.payloadChunkBytes).toString('base64');
      ({ ref } = await this.call('payload.put', { job, requestId, name, chunkIndex, chunkCount, data }));
    }
    return ref!;
  }

  /** Opens the round that is planned next and submits its new groups. Returns its id and the trainer's epoch. */
  async openRound(
    job: string,
    round: Pick<RequestOf<'round.open'>, 'policy' | 'priority' | 'trainerEpoch'> & {
      groupsPerStep: number;
      groups: readonly GroupSubmission[];
    },
  ): Promise<{ roundId: string; trainerEpoch: Epoch; newGroups: number }> {
    const { groupsPerStep, groups, policy, priority, trainerEpoch: earlier } = round;
    const plan = await this.call('round.next', { job, groupsPerStep, remainingGroups: groups.length, policy });
    const { kind, ...rest } = plan;
    if (kind === 'done') throw new Error('Nothing is left to train');
    const roundId = `round-${plan.step}`;
    const body = { job, roundId, kind, policy, priority, ...rest, trainerEpoch: earlier };
    const { trainerEpoch } = await this.call('round.open', body);
    const page = groups.slice(0, plan.newGroups);
    if (page.length > 0) await this.call('round.submit', { job, roundId, trainerEpoch, groups: page });
    return { roundId, trainerEpoch, newGroups: plan.newGroups };
  }

  /** No lease is held: engines empty, no leases, no resumption with wrong tokens, counts that balance. */
  async expectAtRest(): Promise<void> {
    await this.expectNothingHeld();
    const { jobs } = await this.call('job.list', {});
    for (const job of jobs) {
      // Closed rounds are folded into the counts in pages.
      await expect
        .poll(async () => heldIn(await this.readCounts(job)), { timeout: REST_TIMEOUT_MS })
        .toEqual({ finished: 0, held: 0, missing: 0 });
    }
  }

  /** Engines are empty, there are no leases, and nothing was resumed with wrong tokens. */
  async expectNothingHeld(timeoutMs = REST_TIMEOUT_MS): Promise<void> {
    await expect.poll(async () => (await this.engineStates()).flatMap(listRunning), { timeout: timeoutMs }).toEqual([]);
    await expect
      .poll(
        async () => {
          const { leases, waiters, expiredEpochs } = await this.call('lb.status', {});
          return { leases, waiters, expiredEpochs };
        },
        { timeout: timeoutMs },
      )
      .toEqual({ leases: 0, waiters: 0, expiredEpochs: 0 });
    expect((await this.engineStates()).map(({ resumeMismatches }) => resumeMismatches)).toEqual(
      this.engineUrls.map(() => 0),
    );
  }

  /** Ends all processes and removes all keys and files. Fails if a call of theirs does not fit its schema. */
  async stop(): Promise<void> {
    await this.group.stopAll(3_000);
    await this.client?.messaging.connection.close();
    this.redis.close();
    if (this.options.redisUrl === undefined) await flushPrefix(this.redisUrl, `${this.keyPrefix}:`);
    const check = new ProtocolCheck();
    const records = readdirSync(this.folder).filter((file) => file.endsWith(RECORD_END));
    for (const record of records) check.compareRecord(join(this.folder, record));
    rmSync(this.folder, { recursive: true, force: true });
    expect(check.mismatches).toEqual([]);
  }

  /** The metrics page of one application. */
  async metrics(name: string): Promise<string> {
    return (await fetch(`http://127.0.0.1:${this.port(name)}/metrics`)).text();
  }

  /** The port of the health and metrics routes of one application. */
  port(name: string): number {
    return (JSON.parse(readFileSync(join(this.folder, `${name}.json`), 'utf8')) as { port: number }).port;
  }

  /** Runs one more program until the system stops. */
  run(program: ServiceDescription): Promise<ManagedProcess> {
    return this.group.start(program);
  }

  /** Changes the simulated seconds per second of all engines; default: the speed of the options. */
  async setSpeed(speed = this.speed): Promise<void> {
    const body = JSON.stringify({ speed });
    const answers = this.engineUrls.map((url) => fetch(`${url}/simulator/speed`, { method: 'POST', body }));
    for (const { status } of await Promise.all(answers)) expect(status).toBe(200);
  }

  /** The last lines of all logs, for a failed test. */
  async logs(lines = 15): Promise<string> {
    const tails = this.group.list().map(async (one) => `--- ${one.name}\n${await one.logTail(lines)}`);
    return (await Promise.all(tails)).join('\n');
  }

  /** Requests that are in an engine now. */
  async runningRequests(): Promise<string[]> {
    return (await this.engineStates()).flatMap(listRunning);
  }

  private get speed(): number {
    return this.options.speed ?? 100;
  }

  private async readCounts(job: string) {
    return (await this.call('job.status', { job })).requests;
  }

  private async engineStates(): Promise<EngineState[]> {
    return Promise.all(
      this.engineUrls.map(async (url) => (await (await fetch(`${url}/simulator/state`)).json()) as EngineState),
    );
  }

  private async startEngines(count: number): Promise<void> {
    const [readyFile, lengths] = [join(this.folder, 'engines.json'), join(this.folder, 'lengths.jsonl')];
    writeFileSync(lengths, this.options.prompts ? lengthsFile(this.options.prompts) : '{"prompt":"*","lengths":[300]}');
    const program = join('dist', 'lab', 'engine-simulator', 'src', 'main.js');
    await this.group.start({
      name: 'engines',
      command: [
        process.execPath,
        program,
        ...toOptions({
          engines: count,
          port: this.options.enginePort ?? 0,
          speed: this.speed,
          lengths,
          seed: 1,
        }),
      ],
      environment: { READY_FILE: readyFile },
      ready: async () => readFileSync(readyFile, 'utf8') !== '',
    });
    const { servers } = JSON.parse(readFileSync(readyFile, 'utf8')) as { servers: { url: string }[] };
    this.engineUrls = servers.map(({ url }) => url);
  }

  async registerEngines(pool = this.pool): Promise<void> {
    await Promise.all(
      this.engineUrls.map((endpoint, index) =>
        this.client.callWithRetry(
          pool,
          'server.register',
          {
            serverId: `engine-${index}`,
            endpoint,
            dialect: 'vllm',
            model: 'simulated',
            instanceId: 'first',
            maxInflight: 256,
            weightVersion: 0,
          },
          { deadlineMs: CALL_DEADLINE_MS },
        ),
      ),
    );
  }
}

/** Arguments of a command line for these options. */
export function toOptions(values: Record<string, string | number>): string[] {
  return Object.entries(values).flatMap(([name, value]) => [`--${name}`, String(value)]);
}

function listRunning({ table }: EngineState): string[] {
  return table.filter(({ state }) => state === 'running' || state === 'waiting').map(({ id }) => id);
}

/** Counts that are zero in a balanced job without open rounds. */
function heldIn(counts: ReplyOf<'job.status'>['requests']) {
  const { submitted, finished, pending, claimed, running, cutting, unfinished, trained, failed, dropped } = counts;
  const held = pending + claimed + running + cutting;
  return { finished, held, missing: submitted - (finished + held + unfinished + trained + failed + dropped) };
}
