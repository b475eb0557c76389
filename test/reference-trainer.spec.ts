import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Report } from '../lab/demo/src/report/report';
import { startEngine } from '../lab/engine-simulator/src/test-engine';
import { findChild, StartRuns, useStart } from './system/start-runs';

const SMALL = ['--steps', '3', '--groups', '8', '--samples', '4', '--engines', '2', '--over-provision', '1.5'];

describe('npm start', () => {
  const runs = useStart();
  const { start, output, left } = runs;

  it('--preset ascend loses nothing with a rebalance, and reports the same step without moves beside it', async () => {
    const file = join(runs.folder, 'report.json');
    const small = ['--engines', '2', '--groups', '3', '--samples', '8', '--speed', '400'];
    const { exited } = await start('--once', '--preset', 'ascend', ...small, '--report', file);
    expect((await exited).code, output()).toBe(0);
    const { rebalance, baseline, totals, valid, engineSeconds, simulatedSpeedup } = JSON.parse(
      readFileSync(file, 'utf8'),
    ) as Report;
    expect(valid || output().includes('clocks lagged'), output()).toBe(true);
    expect(rebalance).toMatchObject({ mode: 'on', policy: 'tier-cost' });
    // A busy machine may end the step before there is a plan; moves.spec.ts waits for them.
    expect(rebalance!.moves === 0 || rebalance!.plans > 0).toBe(true);
    expect(baseline).toMatchObject({ policy: 'wait', rebalance: { mode: 'off', plans: 0, moves: 0 } });
    expect(engineSeconds! * simulatedSpeedup!).toBeCloseTo(baseline!.engineSeconds!, 6);
    expect(baseline!.totals).toEqual(totals);
    expect(totals).toMatchObject({ trained: 24, lost: 0, duplicated: 0, faulty: 0 });
    expect(output()).toMatch(/Speed-up over no rebalance/);
  });

  it('--once rolls out, reports, loses and repeats nothing, leaves nothing running, and can be continued', async () => {
    const [report, results, events] = ['report.json', 'results.jsonl', 'events.jsonl'].map((name) =>
      join(runs.folder, name),
    ) as [string, string, string];
    const files = ['--report', report, '--results', results, '--record-events', events];
    const run = await start('--once', ...SMALL, '--speed', '300', '--job', 'job', ...files);
    const { code } = await run.exited;
    expect(code, output()).toBe(0);
    const { steps, totals, baseline, speedup } = JSON.parse(readFileSync(report, 'utf8')) as Report;
    expect(steps).toHaveLength(3);
    for (const step of steps) {
      expect(step).toMatchObject({
        roundId: expect.any(String) as string,
        kind: expect.stringMatching(/^(short|long)$/) as string,
        groupsAccepted: 8,
        requestsDone: expect.any(Number) as number,
        requestsCut: expect.any(Number) as number,
        groupsRequeued: expect.any(Number) as number,
        wallSeconds: expect.any(Number) as number,
        idleShare: expect.any(Number) as number,
      });
    }
    const samples = 3 * 8 * 4;
    expect(totals).toMatchObject({
      submitted: samples,
      accepted: samples,
      trained: samples,
      unfinished: 0,
      failed: 0,
      dropped: 0,
      lost: 0,
      duplicated: 0,
    });
    expect(baseline?.wallSeconds).toBeGreaterThan(0);
    expect(speedup).toBeGreaterThan(0);
    expect(readFileSync(results, 'utf8').trim().split('\n')).toHaveLength(samples);
    const opened = readFileSync(events, 'utf8').match(/"type":"round.opened".*"atMs":\d+/g);
    expect(opened).toHaveLength(6);
    await expect.poll(left).toEqual([]);

    // The next run uses another pool, in which Redis does not know the job.
    const more = ['--once', ...SMALL, '--steps', '4', '--speed', '300', '--job', 'job', '--results', results];
    const refused = await start(...more);
    expect((await refused.exited).code).toBe(2);
    expect(output()).toMatch(/use --continue to continue after them/);
    const continued = await start(...more, '--continue', '--report', report);
    expect((await continued.exited).code, output()).toBe(0);
    const second = JSON.parse(readFileSync(report, 'utf8')) as Report;
    expect(second).toMatchObject({
      baseline: null,
      steps: [{ step: 4 }],
      totals: { lost: 0, duplicated: 0, faulty: 0 },
    });
    expect(readFileSync(results, 'utf8').trim().split('\n')).toHaveLength(samples + 8 * 4);
  });

  it('--once --via gateway rolls out over HTTP with the same totals, also under a policy to compare with', async () => {
    const report = join(runs.folder, 'report.json');
    const options = [...SMALL, '--steps', '2', '--speed', '300', '--compare', 'auto', '--report', report];
    const run = await start('--once', '--via', 'gateway', ...options);
    const { code } = await run.exited;
    expect(code, output()).toBe(0);
    const { totals, baseline, compared, control } = JSON.parse(readFileSync(report, 'utf8')) as Report;
    const samples = 2 * 8 * 4;
    expect(baseline).toBeNull();
    expect(compared).toMatchObject([{ policy: 'auto', totals, control: { responses: samples } }]);
    // The NATS and the Redis of the tests are not processes of this run.
    expect(Object.keys(control!.byProgram).toSorted()).toEqual([
      'gateway',
      'load-balancer',
      'trainer',
      'trainer-coordinator',
      'worker',
    ]);
    expect(control!.cpuSeconds).toBeGreaterThan(0);
    expect(control!.tokens).toBeGreaterThan(control!.responses);
    const none = { unfinished: 0, failed: 0, dropped: 0, lost: 0, duplicated: 0, faulty: 0 };
    expect(totals).toEqual({ submitted: samples, accepted: samples, trained: samples, ...none });
    await expect.poll(left).toEqual([]);
  });

  it('finds a comparison invalid when an engine does not give samples the lengths that were asked for', async () => {
    const engine = await startEngine('vllm', { speed: 300 });
    try {
      const report = join(runs.folder, 'report.json');
      const options = ['--steps', '1', '--groups', '4', '--samples', '2', '--no-baseline', '--report', report];
      const lengths = ['--engine', engine.url, '--lengths', 'think-32k', '--max-tokens', '2000'];
      const { exited } = await start('--once', ...options, ...lengths);
      expect((await exited).code, output()).toBe(0);
      const { totals, otherLengths, valid, notes } = JSON.parse(readFileSync(report, 'utf8')) as Report;
      expect(totals).toMatchObject({ trained: 8, lost: 0, duplicated: 0, faulty: 0 });
      expect(otherLengths).toBeGreaterThan(0);
      expect(valid).toBe(false);
      expect(notes[0]).toMatch(/under resume, \d samples have other lengths than --lengths asks for/);
    } finally {
      await engine.close();
    }
  });

  it('prints the addresses of console and gateway, with a token for each, and ends everything it started on Ctrl-C', async () => {
    const run = await start(...SMALL, '--speed', '1');
    await expect.poll(output).toMatch(/^Console: .*\nREST API: .*\nToken: .*\n/);
    const [, address, token] = /^REST API: +(\S+).*\nToken: +(\S+)/m.exec(output())!;
    const headers = { Authorization: `Bearer ${token}` };
    expect((await fetch(`${address}/pools`, { headers })).status).toBe(200);
    expect((await fetch(`${address}/pools`)).status).toBe(401);
    await expect.poll(() => left().filter((line) => /worker|simulator/.test(line)).length).toBe(3);
    await expect.poll(output).toMatch(/^OpenAI:/m);
    const [, openai, key] = /^Gateway: .*\nOpenAI: +OPENAI_BASE_URL=(\S+) OPENAI_API_KEY=(\S+)$/m.exec(output())!;
    const signed = { headers: { Authorization: `Bearer ${key}` } };
    await expect.poll(async () => (await fetch(`${openai}/models`, signed)).status).toBe(200);
    expect((await fetch(`${openai}/models`)).status).toBe(401);
    run.kill('SIGINT');
    expect(await run.exited).toEqual({ code: 130, signal: null });
    await expect.poll(left).toEqual([]);
  });

  it.skipIf(!existsSync('/proc/self/stat'))(
    'starts dead processes again, reports it, and loses and repeats nothing',
    async () => {
      const report = join(runs.folder, 'report.json');
      const small = ['--steps', '2', '--groups', '8', '--samples', '2', '--engines', '2', '--over-provision', '1.5'];
      const run = await runs.startWith(undefined, undefined, ['--once', ...small, '--no-baseline', '--report', report]);
      await expect.poll(output).toMatch(/Pool local/);
      await expect.poll(() => left().filter((line) => /worker/.test(line)).length).toBe(2);
      const names = {
        'redis-server': 'Redis',
        'nats-server': 'NATS',
        'engine-simulator': 'engine-simulator',
        'trainer-coordinator': 'trainer-coordinator',
        'load-balancer': 'load-balancer',
      };
      for (const program of Object.keys(names)) process.kill(findChild(run.pid!, program)!, 'SIGKILL');
      for (const name of Object.values(names)) {
        await expect.poll(output).toMatch(new RegExp(`${name} ended \\(SIGKILL\\); it is restarted`));
        await expect.poll(output).toMatch(new RegExp(`${name} runs again`));
      }
      const { code } = await run.exited;
      expect(code, output()).toBe(0);
      const { totals, notes } = JSON.parse(readFileSync(report, 'utf8')) as Report;
      expect(totals).toMatchObject({ trained: 32, lost: 0, duplicated: 0, faulty: 0 });
      expect(notes).toContainEqual(expect.stringMatching(/simulated engines ended and were restarted 1 times/));
      await expect.poll(left).toEqual([]);
    },
  );
});

describe('npm start with wrong input', () => {
  const GOOD = '{"id":"a","prompt":"one"}\n';
  it.concurrent.for<[string, number, RegExp, string, string[]]>([
    ['a malformed prompts file', 2, /line 2/, `${GOOD}{"id":"b","prompt":`, []],
    ['a prompt id that comes twice', 2, /line 2/, GOOD + GOOD, []],
    ['an empty prompts file', 2, /no prompts|empty/, '', []],
    ['more groups than prompts', 2, /more groups than prompts/, GOOD, ['--groups', '2']],
    ['over-provision below 1', 2, /over-provision/, GOOD, ['--over-provision', '0.5']],
    ['an engine that does not answer', 1, /ENGINE_UNREACHABLE/, GOOD, ['--engine', 'http://127.0.0.1:1']],
  ])(
    'refuses %s with the reason, and starts nothing',
    async ([, exitCode, message, content, options], { expect: expectHere }) => {
      const runs = new StartRuns();
      runs.begin();
      try {
        const prompts = join(runs.folder, 'prompts.jsonl');
        writeFileSync(prompts, content);
        const run = await runs.start('--once', '--groups', '1', '--prompts', prompts, ...options);
        const { code } = await run.exited;
        expectHere(runs.output()).toMatch(message);
        expectHere(code).toBe(exitCode);
        expectHere(runs.output()).not.toMatch(/NATS:/);
        await expectHere.poll(runs.left).toEqual([]);
      } finally {
        await runs.end();
      }
    },
  );
});
