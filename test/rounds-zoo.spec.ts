import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TAIL_POLICIES, type TailPolicy, type TailPolicyName } from '@broomwagon/contracts';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { inEngine, selectZoo, startEngine, fetchState } from '../lab/engine-simulator/src/test-engine';
import { lengthSource } from '../lab/engine-simulator/src/tokens/length-source';
import { findSampleFaults } from '../lab/engine-simulator/src/zoo/sample-faults';
import {
  canNotStop,
  COMMON,
  FAILING,
  getStanding,
  mayLackLogprobs,
  STOP_TEXT,
  PASSING,
} from '../lab/engine-simulator/src/zoo/zoo-sets';
import { dataSet, lengthsFile, trueSample } from './system/data-set';
import { Gateway } from './system/gateway';
import { HttpOperations } from './system/http-operations';
import { TestSystem } from './system/test-system';

/** `ZOO_RUNS=10000 TEST_SEED=7 npm run test:one -- test/rounds-zoo.spec.ts` runs 10,000 jobs. */
const RUNS = Number(process.env.ZOO_RUNS ?? (inject('runsFactor') === 1 ? 2 : 150));
const GROUPS_PER_STEP = 3;
const PROMPTS = dataSet(6, 2).map((prompt, position) => ({
  ...prompt,
  // One sample in four is long, so that each round has a tail.
  lengths: prompt.lengths.map((_, index) => ((position + index) % 4 === 0 ? 160 : 20 + 3 * position)),
}));
/** Pairs of a vLLM and an SGLang: a sample that one of them has started may end on the other. */
const ENGINES = [
  { dialect: 'vllm', form: [] },
  { dialect: 'sglang', form: ['sglang-whole'] },
  { dialect: 'vllm', form: [] },
  { dialect: 'sglang', form: ['sglang-new'] },
] as const;
const PARAMETERS: Partial<Record<TailPolicyName, Omit<TailPolicy, 'name' | 'overProvision'>>> = {
  'fixed-concurrency': { concurrency: 8 },
  auto: { maxOffPolicyShare: 0.9 },
};

interface Drawn {
  entries: string[];
  at: number;
  hits: number;
}

function drawFor(dialect: 'vllm' | 'sglang'): fc.Arbitrary<Drawn> {
  const names = PASSING.filter(({ dialects }) => dialects.includes(dialect)).map(({ name }) => name);
  return fc.record({
    entries: fc.uniqueArray(fc.constantFrom(...names), { maxLength: 2 }),
    at: fc.nat({ max: 60 }),
    hits: fc.integer({ min: 1, max: 3 }),
  });
}

const draw = fc.record({
  policy: fc.constantFrom(...TAIL_POLICIES),
  /** The trainer drives its rounds over HTTP, else over NATS. */
  isOverHttp: fc.boolean(),
  isStopped: fc.boolean(),
  streamInterval: fc.option(fc.constantFrom(4, 16, 64), { nil: undefined }),
  engines: fc.tuple(...ENGINES.map(({ dialect }) => drawFor(dialect))),
});

describe('rounds on engines that show pairs of behaviours', () => {
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-zoo-'));
  const engines: Awaited<ReturnType<typeof startEngine>>[] = [];
  let system: TestSystem;
  let gateway: Gateway | undefined;
  let jobs = 0;
  beforeAll(async () => {
    const lengths = join(folder, 'lengths.jsonl');
    writeFileSync(lengths, lengthsFile(PROMPTS));
    system = await TestSystem.start({
      engines: 0,
      environment: { ENGINE_STALL_TIMEOUT_MS: '2000', ENGINE_FIRST_TOKEN_TIMEOUT_MS: '2000' },
    });
    for (const [index, { dialect, form }] of ENGINES.entries()) {
      const engine = await startEngine(dialect, { lengths: lengthSource(lengths, 1), streamMs: 0, zoo: form });
      engines.push(engine);
      await system.call('server.register', {
        serverId: `engine-${index}`,
        endpoint: engine.url,
        dialect,
        model: 'simulated',
        instanceId: 'first',
        maxInflight: 4,
        weightVersion: 0,
      });
    }
  });
  afterAll(async () => {
    await gateway?.close();
    await system?.stop();
    await Promise.all(engines.map((engine) => engine.close()));
    rmSync(folder, { recursive: true, force: true });
  });

  /** Names of behaviours that are left when the first calls of an engine are over. */
  const lasting = (entries: readonly string[]): string[] => entries.filter((name) => !FAILING.has(name));

  it('train each sample once, with the tokens of plain engines', { timeout: 60_000 + RUNS * 30_000 }, async () => {
    const http = new HttpOperations((gateway ??= await Gateway.start(system.keyPrefix, system.pool)));
    await fc.assert(
      fc.asyncProperty(draw, async ({ policy, isOverHttp, isStopped, streamInterval, engines: drawn }) => {
        const job = `zoo-${++jobs}`;
        const halves = drawn.some(({ entries }) => entries.some((name) => COMMON.has(name)));
        for (const [index, { entries, at, hits }] of drawn.entries()) {
          const { dialect, form } = ENGINES[index]!;
          const always = [...form, ...getStanding(dialect, { stops: isStopped, halves })];
          // One engine always has a good health.
          const names = entries.filter(
            (name) => !COMMON.has(name) && (index > 0 || name !== 'unhealthy-while-streaming'),
          );
          const later = [...always, ...lasting(names)];
          await selectZoo(engines[index]!.url, { entries: [...always, ...names], at, count: hits, later });
        }
        const { lines } = await system.train(job, PROMPTS, {
          groupsPerStep: GROUPS_PER_STEP,
          policy,
          tail: PARAMETERS[policy],
          sampling: { logprobs: true, streamInterval, ...(isStopped && { stop: [STOP_TEXT] }) },
          ...(isOverHttp && { client: http }),
        });

        const samples = PROMPTS.length * PROMPTS[0]!.samples;
        expect(new Set(lines.map(({ promptId, sampleIndex }) => `${promptId}/${sampleIndex}`)).size).toBe(samples);
        expect(lines).toHaveLength(samples);
        const lacksLogprobs = drawn.some(({ entries }) => mayLackLogprobs(entries));
        for (const line of lines) {
          const prompt = PROMPTS.find(({ id }) => id === line.promptId)!;
          const truth = trueSample(job, prompt, line.sampleIndex);
          const name = `${job} ${policy}: ${line.promptId}/${line.sampleIndex} ${JSON.stringify(line.segments)}`;
          expect(
            findSampleFaults(line, {
              ...truth,
              mayLackLogprobs: lacksLogprobs,
              stop: isStopped ? STOP_TEXT : undefined,
            }),
            name,
          ).toEqual([]);
          expect(
            line.segments.every(({ weightVersion, toWeightVersion = 0 }) => weightVersion + toWeightVersion === 0),
          ).toBe(true);
        }
        await expect
          .poll(async () => (await system.call('job.status', { job })).requests)
          .toMatchObject({ submitted: samples, trained: samples, failed: 0, dropped: 0 });
        for (const [index, { entries }] of drawn.entries()) {
          const { url } = engines[index]!;
          if (!canNotStop(entries)) await expect.poll(() => inEngine(url)).toBe(0);
          expect((await fetchState(url)).resumeMismatches).toBe(0);
        }
        await expect.poll(() => system.call('lb.status', {})).toMatchObject({ leases: 0, waiters: 0 });
      }),
      { seed: inject('seed'), numRuns: RUNS, endOnFailure: true },
    );
  });
});
