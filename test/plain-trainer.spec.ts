import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { GroupResult } from '@broomwagon/contracts';
import { ManagedProcess } from '@broomwagon/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { optionsOf, TestSystem } from './system/test-system';

// More steps than a busy machine trains while this test looks away.
const PROMPTS = 32;
const GROUPS = 4;
const SAMPLES = 2;
const STEPS = PROMPTS / GROUPS;

describe('a trainer with a plain NATS client', () => {
  let system: TestSystem;
  let out: string;
  const trainers: ManagedProcess[] = [];

  beforeAll(async () => {
    // 300 tokens take half a second: a step is long enough to be interrupted.
    system = await TestSystem.start({ workers: 1, speed: 10 });
  });
  beforeEach(() => {
    out = mkdtempSync(join(tmpdir(), 'broomwagon-plain-'));
  });
  afterEach(async () => {
    for (const trainer of trainers.splice(0)) await trainer.stop(0);
    rmSync(out, { recursive: true });
    await system.expectAtRest();
  });
  afterAll(() => system?.stop());

  async function startTrainer(job: string): Promise<ManagedProcess> {
    const trainer = new ManagedProcess({
      name: `trainer-${trainers.length}`,
      command: [
        process.execPath,
        join('docs', 'protocol', 'examples', 'trainer.mjs'),
        ...optionsOf({ pool: system.pool, job, prompts: PROMPTS, groups: GROUPS, samples: SAMPLES, out }),
      ],
      environment: { NATS_URL: system.natsUrl },
      logFile: join(out, `trainer-${trainers.length}.log`),
    });
    trainers.push(trainer);
    await trainer.start();
    return trainer;
  }

  const files = () => readdirSync(out).filter((file) => /^step-\d+\.json$/.test(file));
  const trainedSteps = (least: number) => expect.poll(() => files().length).toBeGreaterThan(least - 1);

  function expectWholeDataSet(): void {
    expect(files().sort()).toEqual(Array.from({ length: STEPS }, (_, index) => `step-${index + 1}.json`));
    const groups = files().flatMap(
      (file) => (JSON.parse(readFileSync(join(out, file), 'utf8')) as { groups: GroupResult[] }).groups,
    );
    const ids = groups.map(({ groupId }) => groupId).sort();
    expect(ids).toEqual(Array.from({ length: PROMPTS }, (_, index) => `prompt-${index}`).sort());
    for (const { samples } of groups) {
      expect(samples.map(({ sampleIndex }) => sampleIndex).sort()).toEqual([0, 1]);
      const tokens = samples as unknown as { tokens: number[]; tokenCount: number }[];
      expect(tokens.map((sample) => sample.tokens.length)).toEqual(tokens.map((sample) => sample.tokenCount));
    }
  }

  it('that is killed in the middle is taken over by another, which ends what it began', async () => {
    const first = await startTrainer('killed');
    await trainedSteps(2);
    first.kill('SIGKILL');
    await first.exited;
    expect(files().length).toBeLessThan(STEPS);
    const second = await startTrainer('killed');
    expect(await second.exited).toEqual({ code: 0, signal: null });
    expectWholeDataSet();
  });

  it('that wakes up after another took over is fenced', async () => {
    const first = await startTrainer('stopped');
    await trainedSteps(1);
    first.pause();
    const second = await startTrainer('stopped');
    await trainedSteps(2);
    first.resume();
    const { code } = await first.exited;
    expect(code).not.toBe(0);
    // Its next word is refused; what it was just reading may be gone.
    expect(await first.logTail(50)).toMatch(/FENCED|PAYLOAD_NOT_FOUND/);
    expect(await second.exited).toEqual({ code: 0, signal: null });
    expectWholeDataSet();
  });
});
