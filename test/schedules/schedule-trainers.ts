import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve as absolute } from 'node:path';
import { createInterface } from 'node:readline';
import { Worker } from 'node:worker_threads';
import { testNatsUrl } from '@broomwagon/testing';
import { Operations } from '../../lab/reference-trainer/src/loop/operations';
import { TrainerLoop } from '../../lab/reference-trainer/src/loop/trainer-loop';
import { pythonEnvironment } from '../python/pytest';
import { SEED, type TestPrompt } from '../system/data-set';
import type { Gateway } from '../system/gateway';
import { HttpOperations } from '../system/http-operations';
import { toOptions } from '../system/test-system';
import { GROUPS_PER_STEP, type Schedule, type TrainerName } from './schedule';

const CALL_DEADLINE_MS = 120_000;
const MAX_TOKENS = 16_384;

/** A trained sample as a trainer has it. */
export interface TrainedSample {
  promptId: string;
  sampleIndex: number;
  requestId?: string;
  tokenIds: number[];
  text: string;
  logprobs?: (number | null)[] | null;
  finishReason: string;
  weightVersions: [number, number];
  segments: {
    serverId: string;
    attempt: string;
    weightVersion: number;
    toWeightVersion?: number;
    tokenCount: number;
  }[];
}

/** Result of a job at its trainer. */
export interface JobEnd {
  samples: TrainedSample[];
  /** Groups that were reported to the trainer as failed or dropped, with the reasons. */
  reported: { groupId: string; reason?: string }[];
}

type Train = (
  pool: string,
  job: string,
  prompts: readonly TestPrompt[],
  schedule: Pick<Schedule, 'policy' | 'stop'>,
) => Promise<JobEnd>;

/** The trainers of schedules. One process of Python serves all jobs; its client is connected anew for each. */
export class ScheduleTrainers {
  private child: ChildProcess | undefined;
  private readonly waiting = new Map<string, { resolve(end: JobEnd): void; reject(error: Error): void }>();

  /**
   * @param gateways by pool
   * @param folder for files of the example trainer
   * @param python interpreter with the packages of the client
   */
  constructor(
    private readonly gateways: ReadonlyMap<string, Gateway>,
    private readonly folder: string,
    private readonly python: string | undefined,
  ) {}

  train(trainer: TrainerName, ...args: Parameters<Train>): Promise<JobEnd> {
    return { python: this.runPython, http: this.http, nats: this.nats }[trainer](...args);
  }

  close(): void {
    this.child?.stdin!.end();
    this.child?.kill();
  }

  private readonly http: Train = async (pool, job, prompts, { policy, stop }) => {
    const samples: TrainedSample[] = [];
    const loop = new TrainerLoop(
      new Operations(new HttpOperations(this.gateways.get(pool)!), pool, { deadlineMs: CALL_DEADLINE_MS }),
      {
        job,
        prompts,
        samples: prompts[0]!.samples,
        maxTokens: MAX_TOKENS,
        sampling: buildSampling(stop),
        groupsPerStep: GROUPS_PER_STEP,
        policy,
        lookMs: 50,
      },
      { sink: { writeRound: async (_, lines) => void samples.push(...(lines as unknown as TrainedSample[])) } },
    );
    await loop.run();
    const { missing, lost } = loop;
    return { samples, reported: missing.map((groupId) => lost.find((one) => one.groupId === groupId) ?? { groupId }) };
  };

  /** docs/protocol/examples/trainer.mjs, in a thread. */
  private readonly nats: Train = async (pool, job, prompts, { policy: { name, overProvision = 1, concurrency } }) => {
    const out = mkdtempSync(join(this.folder, 'example-'));
    const options = {
      pool,
      job,
      out,
      prompts: prompts.length,
      groups: GROUPS_PER_STEP,
      samples: prompts[0]!.samples,
      seed: SEED,
      'tail-policy': name,
      'over-provision': overProvision,
      ...(concurrency !== undefined && { concurrency }),
    };
    const trainer = new Worker(absolute('docs/protocol/examples/trainer.mjs'), {
      argv: toOptions(options),
      env: { ...process.env, NATS_URL: testNatsUrl(), GATEWAY_URL: '' },
      stdout: true,
      stderr: true,
    });
    let said = '';
    trainer.stderr.on('data', (text) => (said += String(text)));
    await new Promise<void>((done, failed) => {
      trainer.once('error', failed);
      trainer.once('exit', () => done());
    });
    const steps = readdirSync(out)
      .filter((file) => /^step-\d+\.json$/.test(file))
      .map((file) => JSON.parse(readFileSync(join(out, file), 'utf8')) as ExampleStep);
    // The log also names groups that ended after the last step.
    const missing = /^Not trained: (.*)$/m.exec(said)?.[1]?.split(' ') ?? [];
    const reasons = new Map([...said.matchAll(/^Group (\S+) \w+: (\S+)/gm)].map(([, id, reason]) => [id!, reason!]));
    for (const { groupId, reason } of steps.flatMap(({ lost }) => lost)) reasons.set(groupId, reason);
    const samples = steps.flatMap(({ groups }) =>
      groups.flatMap(({ groupId, samples: all }) =>
        all.map(({ tokens, ...sample }) => ({ ...sample, promptId: groupId, tokenIds: tokens })),
      ),
    );
    const reported = [...new Set([...reasons.keys(), ...missing])];
    return { samples, reported: reported.map((groupId) => ({ groupId, reason: reasons.get(groupId) })) };
  };

  private readonly runPython: Train = (pool, job, prompts, { policy, stop }) => {
    const body = {
      pool,
      job,
      policy,
      groups: GROUPS_PER_STEP,
      samples: prompts[0]!.samples,
      maxTokens: MAX_TOKENS,
      sampling: buildSampling(stop),
      prompts: prompts.map(({ id, prompt }) => ({ id, ...prompt })),
    };
    return new Promise((resolve, reject) => {
      this.waiting.set(job, { resolve, reject });
      this.started().stdin!.write(`${JSON.stringify(body)}\n`);
    });
  };

  private started(): ChildProcess {
    if (this.child) return this.child;
    const environment = pythonEnvironment(undefined, { NATS_URL: testNatsUrl() });
    this.child = spawn(this.python!, [absolute('test/python/schedule_trainer.py')], environment);
    createInterface({ input: this.child.stdout! }).on('line', (line) => {
      const { job, error, ...end } = JSON.parse(line) as JobEnd & { job: string; error?: string };
      if (error === undefined) this.waiting.get(job)!.resolve(end);
      else this.waiting.get(job)!.reject(new Error(error));
      this.waiting.delete(job);
    });
    let said = '';
    this.child.stderr!.on('data', (text) => (said = `${said}${String(text)}`.slice(-2_000)));
    this.child.once('exit', () => {
      for (const end of this.waiting.values()) end.reject(new Error(`Python ended: ${said}`));
    });
    return this.child;
  }
}

function buildSampling(stop: string | undefined): object {
  return { seed: SEED, logprobs: true, ...(stop !== undefined && { stop: [stop] }) };
}

interface ExampleStep {
  groups: { groupId: string; samples: (Omit<TrainedSample, 'promptId' | 'tokenIds'> & { tokens: number[] })[] }[];
  lost: { groupId: string; reason: string }[];
}
