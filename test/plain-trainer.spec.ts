import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { GroupResult, Prompt } from '@broomwagon/contracts';
import { type ManagedProcess, ProtocolWatch } from '@broomwagon/testing';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { examplePrompts, startExampleTrainer } from './set-back/trainers';
import { TestSystem } from './system/test-system';

// More steps than a busy machine trains between two checks of this test.
const PROMPTS = 32;
const GROUPS = 4;
const SAMPLES = 2;
const STEPS = PROMPTS / GROUPS;
/** Speed of the steps after the last check in the middle of a data set. */
const LAST_SPEED = 100;

describe('a trainer with a plain client of NATS or HTTP', () => {
  let system: TestSystem;
  let out: string;
  let watch: ProtocolWatch;
  const trainers: ManagedProcess[] = [];

  beforeAll(async () => {
    // 300 tokens take half a second: a step is long enough to be interrupted. Groups of 900 are cut at its end.
    const prompts = examplePrompts(PROMPTS, SAMPLES).map((prompt, index) => ({
      ...prompt,
      lengths: [index % 4 === 0 ? 900 : 300],
    }));
    system = await TestSystem.start({ workers: 1, prompts, speed: 10 });
    watch = await ProtocolWatch.start(system.natsUrl, system.pool);
  });
  beforeEach(() => {
    out = mkdtempSync(join(tmpdir(), 'broomwagon-plain-'));
  });
  afterEach(async () => {
    for (const trainer of trainers.splice(0)) await trainer.stop(0);
    rmSync(out, { recursive: true });
    await system.setSpeed();
    await system.expectAtRest();
  });
  afterAll(async () => {
    const { mismatches, compared } = await watch.stop();
    await system?.stop();
    expect(mismatches).toEqual([]);
    expect(compared).toBeGreaterThan(1_000);
  });

  async function startTrainer(job: string, environment?: Record<string, string>): Promise<ManagedProcess> {
    const settings = { job, prompts: PROMPTS, groups: GROUPS, samples: SAMPLES, 'max-version-span': 1 };
    const trainer = await startExampleTrainer(system, out, settings, environment);
    trainers.push(trainer);
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

  /** The trainer names no weight version, so all tokens have the one of their round. */
  async function expectNoneTooOld(job: string): Promise<void> {
    const { cutsPerGroup, versionSpan, waste } = (await system.call('job.ledger', { job })).summary;
    expect(cutsPerGroup.max).toBeGreaterThan(0);
    expect(versionSpan.max).toBe(0);
    expect(waste.byReason).not.toHaveProperty('version-span');
  }

  it('trains its data under the policy `auto`', async () => {
    const settings = { job: 'auto', prompts: 8, groups: GROUPS, samples: SAMPLES, 'tail-policy': 'auto' };
    const trainer = await startExampleTrainer(system, out, settings);
    trainers.push(trainer);
    expect((await trainer.exited).code, await trainer.logTail(9)).toBe(0);
    expect(files().sort()).toEqual(['step-1.json', 'step-2.json']);
  });

  it('that is to raise ends at a group that was dropped, and otherwise trains the others and names the group', async () => {
    const settings = { job: 'dropping', prompts: GROUPS, groups: GROUPS, samples: SAMPLES, 'tail-policy': 'wait' };
    const wait = { ...settings, 'over-provision': 1 };
    // An abort of a group that is not submitted yet drops the group at its submission.
    await system.call('request.abort', { abortId: 'a', job: 'dropping', groupId: 'prompt-1' });
    const named = 'Group prompt-1 dropped: abort';
    const raising = await startExampleTrainer(system, out, { ...wait, 'on-failed': 'raise' });
    trainers.push(raising);
    expect((await raising.exited).code).toBe(1);
    const said = await raising.logTail(50);
    expect([said, files()]).toEqual([expect.stringContaining(named), []]);
    expect(said).toContain('Step 1 has lost 1 groups and is not trained');
    const warning = await startExampleTrainer(system, out, wait);
    trainers.push(warning);
    // The code also says that a prompt of the data set was not trained.
    expect((await warning.exited).code).toBe(1);
    expect(await warning.logTail(50)).toContain(named);
    const [{ groups, lost }] = files().map((file) => JSON.parse(readFileSync(join(out, file), 'utf8')));
    expect(groups).toHaveLength(GROUPS - 1);
    expect(lost).toEqual([{ groupId: 'prompt-1', state: 'dropped', reason: 'abort' }]);
  });

  it('that is killed in the middle is taken over by another, which trains the rest', async () => {
    const first = await startTrainer('killed');
    await trainedSteps(2);
    first.kill('SIGKILL');
    await first.exited;
    expect(files().length).toBeLessThan(STEPS);
    const second = await startTrainer('killed');
    await trainedSteps(3);
    await system.setSpeed(LAST_SPEED);
    expect(await second.exited).toEqual({ code: 0, signal: null });
    expectWholeDataSet();
    await expectNoneTooOld('killed');
  });

  it('that has only HTTP trains each sample once, also when its gateway is killed', async () => {
    const names = ['gateway-1', 'gateway-2'];
    await Promise.all(names.map((name) => system.startApp('gateway', name, { API_KEYS: 'off' })));
    const urls = names.map((name) => `http://127.0.0.1:${system.port(name)}`);
    // The address of NATS is unreachable, so the trainer uses only HTTP.
    const trainer = await startTrainer('http', { GATEWAY_URL: urls.join(','), NATS_URL: 'nats://127.0.0.1:1' });
    await trainedSteps(1);
    system.process('gateway-1').kill('SIGKILL');
    await trainedSteps(3);
    await system.setSpeed(LAST_SPEED);
    expect(await trainer.exited).toEqual({ code: 0, signal: null });
    expectWholeDataSet();
    await expectNoneTooOld('http');
    const { requests, stepsTrained } = await system.call('job.status', { job: 'http' });
    expect([requests.trained, requests.unfinished, stepsTrained]).toEqual([PROMPTS * SAMPLES, 0, STEPS]);
    await system.process('gateway-2').stop(3_000);
  });

  it('that wakes up after another took over is fenced', async () => {
    const first = await startTrainer('stopped');
    await trainedSteps(1);
    first.pause();
    const second = await startTrainer('stopped');
    await trainedSteps(2);
    first.resume();
    const { code } = await first.exited;
    await system.setSpeed(LAST_SPEED);
    expect(code).not.toBe(0);
    // The next call of the fenced trainer is refused; payloads that it was just reading may be gone.
    expect(await first.logTail(50)).toMatch(/FENCED|PAYLOAD_NOT_FOUND/);
    expect(await second.exited).toEqual({ code: 0, signal: null });
    expectWholeDataSet();
  });

  it('gets samples of prompts with images, tool calls and fields of the engine', async () => {
    const image = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
    const prompts: Prompt[] = [
      { messages: [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, image] }] },
      { messages: [{ role: 'assistant', content: null, tool_calls: [{ id: 'c' }] }] },
      { text: 'How many?', engineFields: { cache_salt: 's' } },
    ];
    const groups = prompts.map((prompt, index) => ({ groupId: `g${index}`, samples: 1, maxTokens: 5, prompt }));
    const policy = { name: 'wait', overProvision: 1 } as const;
    const [job, groupsPerStep] = ['prompts', groups.length];
    const { roundId, trainerEpoch } = await system.openRound(job, { groupsPerStep, groups, policy });
    const counts = () => system.call('round.status', { job, roundId });
    await expect.poll(counts).toMatchObject({ state: 'completed', acceptedGroups: groups.length, failedGroups: 0 });
    await system.call('round.cancel', { job, roundId, trainerEpoch, mode: 'drop' });
  });
});
