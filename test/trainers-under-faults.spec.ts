import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { engineRequestId } from '@broomwagon/engines';
import * as fc from 'fast-check';
import { afterAll, afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import type { LengthSource } from '../lab/engine-simulator/src/tokens/length-source';
import { findSampleFaults } from '../lab/engine-simulator/src/zoo/sample-faults';
import { mayLackLogprobs } from '../lab/engine-simulator/src/zoo/zoo-sets';
import { maxFailedGroups } from './schedules/failed-groups';
import { FaultyPool } from './schedules/faulty-pool';
import { type Schedule, schedules, STORM_STATUSES, type TrainerName, TRAINERS } from './schedules/schedule';
import { type JobEnd, ScheduleTrainers, type TrainedSample } from './schedules/schedule-trainers';
import { examplePrompts } from './set-back/trainers';
import { trueSample } from './system/data-set';
import { Gateway } from './system/gateway';
import { ServiceBench } from './system/service-bench';

/** `SCHEDULES=2000 TEST_SEED=7 npm run test:one -- test/trainers-under-faults.spec.ts` runs 2,000 schedules. */
const RUNS = Number(process.env.SCHEDULES ?? (inject('runsFactor') === 1 ? 6 : 200));
/** `SCHEDULE=79,169` runs these schedules of the seed alone. */
const ONLY = (process.env.SCHEDULE ?? '').split(',').filter(Boolean).map(Number);
/** Number of pools side by side; a schedule mostly waits. */
const POOLS = Number(process.env.SCHEDULE_POOLS ?? 6);
const SAMPLES = 2;
/** Failed schedules after which no other begins. */
const MAX_FAILURES = 5;
const STORM_MS = 5_000;
/** A sample without tokens, short ones and a long one, so that each round has a tail. */
const LENGTHS = [[0, 12], [120, 20], [16], [30, 90]];
const PROMPTS = examplePrompts(LENGTHS.length, SAMPLES).map((prompt, index) => ({
  ...prompt,
  lengths: LENGTHS[index]!,
}));
const lengths: LengthSource = {
  name: 'schedules',
  getLength({ promptText, script }) {
    const { lengths: all } = PROMPTS.find(({ prompt }) => prompt.text === promptText)!;
    return all[script.sampleKey % all.length]!;
  },
};
const python = process.env.CLIENT_PYTHON;
const trainers = TRAINERS.filter((name: TrainerName) => name !== 'python' || python !== undefined);

// Short times, so that a hung or dead engine is over within a test.
const ENGINE_TIMES = { engineStallTimeoutMs: 2_000, engineFirstTokenTimeoutMs: 2_000, engineFailurePauseMs: 50 };

describe('trainers on engines that are busy, sick, hung, dying, slow, of other weights or of any behaviour', () => {
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-schedules-'));
  const pools: FaultyPool[] = [];
  let bench: ServiceBench;
  const gateways = new Map<string, Gateway>();
  let all: ScheduleTrainers;

  beforeEach(async () => {
    bench = await ServiceBench.open({ sweepIntervalMs: 200 }, POOLS, {
      probeIntervalMs: 500,
      serverFailedAfterMs: 3_000,
      serverSilentAfterMs: 4_000,
    });
    for (let index = 0; index < POOLS; index++) {
      await bench.begin();
      // The engine of the bench is in no pool.
      await bench.engine.close();
      const pool = new FaultyPool(bench.pool, bench.client, lengths);
      pools.push(pool);
      await pool.open();
      await bench.startWorker({ workerId: `w-${index}`, ...ENGINE_TIMES });
      gateways.set(bench.pool, await Gateway.start(bench.prefix, bench.pool));
    }
    bench.lookAfter(pools.map(({ name }) => name));
    all = new ScheduleTrainers(gateways, folder, python);
  });
  afterEach(async () => {
    all?.close();
    await Promise.all([...gateways.values()].map((gateway) => gateway.close()));
    await bench?.closeWorkers();
    await Promise.all(pools.splice(0).map((pool) => pool.close()));
    await bench?.close();
    gateways.clear();
  });
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  /** Faults in the results of a trainer, as sentences. */
  async function findFaults(
    job: string,
    pool: FaultyPool,
    { samples, reported }: JobEnd,
    schedule: Schedule,
  ): Promise<string[]> {
    const { trainer, stop, disturbances } = schedule;
    const faults: string[] = [];
    const most = maxFailedGroups(schedule);
    if (reported.length > most)
      faults.push(`The schedule fails ${most} groups at most, and these have failed: ${JSON.stringify(reported)}`);
    if (reported.some(({ reason }) => reason === undefined))
      faults.push(`Groups were reported without a reason: ${JSON.stringify(reported)}`);
    const entries = disturbances.flatMap(({ what }) => (what.kind === 'zoo' ? what.entries : []));
    // The example trainer over NATS asks for no log probabilities.
    const asked = {
      stop,
      mayLackLogprobs: mayLackLogprobs(entries),
      ...(trainer === 'nats' && { logprobs: undefined }),
    };
    for (const prompt of PROMPTS) {
      const found = samples.filter(({ promptId }) => promptId === prompt.id);
      const isReported = reported.some(({ groupId }) => groupId === prompt.id);
      if (isReported !== (found.length === 0))
        faults.push(`${prompt.id}: ${found.length} samples, reported: ${isReported}`);
      const indexes = found.map(({ sampleIndex }) => sampleIndex).toSorted();
      if (!isReported && indexes.join() !== '0,1') faults.push(`${prompt.id}: samples ${indexes.join()}`);
      for (const sample of found) {
        const truth = { ...trueSample(job, prompt, sample.sampleIndex), ...asked };
        const requestId = `${job}/${prompt.id}/${sample.sampleIndex}`;
        const name = `${requestId} ${JSON.stringify(sample.segments)}`;
        const wrong = [
          ...findSampleFaults(toFound(sample), truth),
          ...(await findVersionFaults(pool, requestId, sample)),
        ];
        faults.push(...wrong.map((fault) => `${name}: ${fault}`));
      }
    }
    return faults;
  }

  async function runSchedule(name: string, pool: FaultyPool, schedule: Schedule): Promise<JobEnd> {
    const ended = new AbortController();
    const disturbing = pool.disturb(schedule, ended.signal);
    // The error of the disturbances is thrown below, after the end of the trainer.
    disturbing.catch(() => undefined);
    let end: JobEnd;
    try {
      end = await all.train(schedule.trainer, pool.name, name, PROMPTS, schedule);
    } finally {
      ended.abort();
      // Also after an error: the next schedule of the pool has its own disturbances only.
      await disturbing;
      await pool.calm();
    }
    const faults = await findFaults(name, pool, end, schedule);
    const lost = end.reported.length * SAMPLES;
    const counts = async () => (await bench.client.call(pool.name, 'job.status', { job: name })).requests;
    await expect
      .poll(async () => {
        const { submitted, trained, failed, dropped } = await counts();
        return { submitted, trained, lost: failed + dropped };
      })
      .toEqual({ submitted: PROMPTS.length * SAMPLES, trained: PROMPTS.length * SAMPLES - lost, lost });
    await pool.expectAtRest();
    if (faults.length > 0) throw new Error(faults.join('\n'));
    return end;
  }

  /**
   * Runs schedules side by side, each with its index. @returns numbers of groups, and failed schedules with their faults
   */
  async function runAll(queue: [number, Schedule][], name: string) {
    const counts = { trained: 0, reported: 0 };
    const failures: string[] = [];
    await Promise.all(
      pools.map(async (pool) => {
        for (let next = queue.shift(); next !== undefined && failures.length < MAX_FAILURES; next = queue.shift()) {
          const [index, schedule] = next;
          try {
            const { samples, reported } = await runSchedule(`${name}-${index}`, pool, schedule);
            counts.trained += samples.length / SAMPLES;
            counts.reported += reported.length;
          } catch (error) {
            failures.push(
              `Schedule ${index} of seed ${inject('seed')}: ${JSON.stringify(schedule)}\n${(error as Error).message}`,
            );
          }
        }
      }),
    );
    expect(failures).toEqual([]);
    return counts;
  }

  it('train each group while all engines refuse calls for some seconds', { timeout: 300_000 }, async () => {
    const policy = { name: 'resume', overProvision: 1.5, shortfall: 'accept-fewer' } as const;
    const storms = STORM_STATUSES.flatMap((status) =>
      trainers.map((trainer): Schedule => {
        const what = { kind: 'storm', status, forMs: STORM_MS } as const;
        return { trainer, policy, disturbances: [{ afterCalls: 2, what }] };
      }),
    );
    const { reported } = await runAll([...storms.entries()], 'storm');
    expect(reported).toBe(0);
  });

  it(
    'train or report each group once, with whole texts and true versions',
    { timeout: 120_000 + RUNS * 30_000 },
    async () => {
      const seed = inject('seed');
      const drawn = fc.sample(schedules(trainers), { seed, numRuns: RUNS });
      const queue = [...drawn.entries()].filter(([index]) => ONLY.length === 0 || ONLY.includes(index));
      const { trained, reported } = await runAll(queue, 'job');
      // Only few groups fail for good, mostly because of refused requests.
      if (ONLY.length === 0) expect(trained).toBeGreaterThan(reported);
      console.log(`${RUNS} schedules of seed ${seed}: ${trained} groups trained, ${reported} reported`);
    },
  );
});

function toFound({ logprobs, ...sample }: TrainedSample): Parameters<typeof findSampleFaults>[0] {
  // Parts have no text in each trainer.
  return { ...sample, logprobs: logprobs ?? undefined, segments: undefined };
}

async function findVersionFaults(pool: FaultyPool, requestId: string, sample: TrainedSample): Promise<string[]> {
  const { segments, weightVersions } = sample;
  const faults: string[] = [];
  for (const segment of segments) {
    const id = engineRequestId(requestId, segment.attempt as Parameters<typeof engineRequestId>[1]);
    faults.push(...(await pool.findVersionFaults(segment, id)));
  }
  const versions = segments.flatMap(({ weightVersion, toWeightVersion = weightVersion }) => [
    weightVersion,
    toWeightVersion,
  ]);
  const span = versions.length === 0 ? weightVersions : [Math.min(...versions), Math.max(...versions)];
  if (span.join() !== weightVersions.join())
    faults.push(`versions ${weightVersions.join()}, and parts of ${span.join()}`);
  if (Math.max(...weightVersions) > pool.highestVersion)
    faults.push(`version ${weightVersions.join()} of ${pool.highestVersion}`);
  return faults;
}
