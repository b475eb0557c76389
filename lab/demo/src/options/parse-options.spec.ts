import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { describe, expect, it } from 'vitest';
import { HelpRequested, parseOptions } from './parse-options';
import { DEFAULTS } from './trainer-options';
import { rebalanceSettings } from './rebalance-options';
import { planRuns, toTailPolicy } from './tail-options';
import { UsageError } from '../../../reference-trainer/src/usage-error';

/** Path of a file that does not exist. */
const ABSENT = join(tmpdir(), randomUUID());

function catchMessage(...argv: string[]): string {
  try {
    parseOptions(argv);
  } catch (error) {
    expect(error).toBeInstanceOf(UsageError);
    return (error as UsageError).message;
  }
  throw new Error(`accepted: ${argv.join(' ')}`);
}

describe('the command line', () => {
  it('has a default for everything', () => {
    expect(parseOptions([])).toMatchObject({
      engineUrls: [],
      engines: DEFAULTS.engines,
      groups: DEFAULTS.groups,
      overProvision: 1.375,
      tailPolicy: 'resume',
      via: 'nats',
      once: false,
      baseline: true,
    });
  });

  it('reads every option', () => {
    const report = join(tmpdir(), 'r.json');
    const results = join(tmpdir(), 'o.jsonl');
    const options = parseOptions(
      `--prompts - --engines 3 --steps all --groups 64 --samples 2 --over-provision 1.5 --tail-policy regenerate --seed 7
       --via gateway --once --report ${report} --results ${results} --max-tokens 100 --speed 12.5 --lengths think-32k --no-baseline
       --pool p_1 --job j.1 --workers 3 --keep-logs ${tmpdir()}`.split(/\s+/),
    );
    expect(options).toEqual({
      prompts: '-',
      engineUrls: [],
      engines: 3,
      steps: 'all',
      groups: 64,
      samples: 2,
      overProvision: 1.5,
      tailPolicy: 'regenerate',
      tail: {},
      seed: 7,
      sampling: { temperature: 1, seed: 7 },
      via: 'gateway',
      once: true,
      report,
      results,
      continue: false,
      maxTokens: 100,
      speed: 12.5,
      lengths: 'think-32k',
      equalLengths: false,
      compare: ['wait'],
      baseline: false,
      pool: 'p_1',
      job: 'j.1',
      workers: 3,
      keepLogs: tmpdir(),
      rebalance: 'off',
      rebalancePolicy: 'tier-cost',
      setup: { model: '14b-16k', lockstep: false, groupPlacement: 'group-spread' },
    });
  });

  it('takes missing options from a preset, and computes rebalance settings in simulated time', () => {
    const options = parseOptions(['--preset', 'ascend', '--engines', '4', '--rebalance-policy', 'tier-min']);
    const setup = { model: '235b-moe', lockstep: true, groupPlacement: 'group-affinity' };
    expect(options).toMatchObject({ engines: 4, samples: 16, tailPolicy: 'wait', rebalance: 'on', setup });
    expect(rebalanceSettings(options, 10)).toMatchObject({
      mode: 'on',
      policy: 'tier-min',
      tiers: [64, 32, 16, 8, 4],
      stepBaseSeconds: 0.0052,
      prefillTokensPerSecond: 80_000,
      maxRunning: 64,
      planIntervalSteps: 1_000,
    });
    const planned = rebalanceSettings(parseOptions(['--rebalance', 'dry-run']), 10);
    expect(planned).toMatchObject({ mode: 'dry-run', policy: 'tier-cost', planIntervalMs: 6_000 });
    expect(planned).not.toHaveProperty('maxRunning');
    expect(catchMessage('--preset', 'ascend', '--engine', 'http://e')).toMatch(/--preset/);
    expect(catchMessage('--rebalance', 'maybe')).toMatch(/--rebalance/);
  });

  it('reads the parameters of the tail policy', () => {
    const options = parseOptions(
      `--tail-policy drip --adaptive-drip --adaptive-over-provision --sample-over-provision 1.25 --on-cut discard
       --max-cuts 3 --max-age-steps 9 --max-version-span 2 --max-off-policy-share 0.25 --max-longtail-share 0.5
       --deadline-ms 5000`.split(/\s+/),
    );
    expect(toTailPolicy(options)).toEqual({
      name: 'drip',
      overProvision: 1.375,
      overProvisionMode: 'adaptive',
      dripMode: 'adaptive',
      sampleOverProvision: 1.25,
      onCut: 'discard',
      maxCuts: 3,
      maxAgeSteps: 9,
      maxVersionSpan: 2,
      maxOffPolicyShare: 0.25,
      maxLongtailShare: 0.5,
      deadlineMs: 5_000,
    });
    const fixed = parseOptions(['--tail-policy', 'fixed-concurrency', '--groups', '16', '--samples', '4']);
    expect(toTailPolicy(fixed)).toEqual({ name: 'fixed-concurrency', overProvision: 1.375, concurrency: 64 });
  });

  it('plans a run for each policy to compare with, but no second one of the same', () => {
    const given = [
      '--engine',
      'http://a:1',
      '--lengths',
      'think-32k',
      '--max-cuts',
      '2',
      '--compare',
      'wait,resume,auto',
    ];
    const options = parseOptions(given);
    expect(options.equalLengths).toBe(true);
    expect(planRuns(options)).toEqual([
      { policy: { name: 'resume', overProvision: 1.375, maxCuts: 2 }, rebalance: 'off', suffix: '' },
      { policy: { name: 'wait', overProvision: 1 }, rebalance: 'off', suffix: '-wait' },
      { policy: { name: 'auto' }, rebalance: 'off', suffix: '-auto' },
    ]);
    expect(planRuns(parseOptions([...given, '--no-baseline']))).toHaveLength(1);
    expect(planRuns(parseOptions(['--rebalance', 'on'])).map(({ rebalance }) => rebalance)).toEqual(['on', 'off']);
    expect(planRuns(parseOptions(['--tail-policy', 'wait']))).toHaveLength(1);
  });

  it('merges sampling parameters: a file, then parameters with an option of their own', () => {
    const folder = mkdtempSync(join(tmpdir(), 'broomwagon-sampling-'));
    const file = join(folder, 'sampling.json');
    writeFileSync(file, '{"topK": 20, "temperature": 0.2, "logprobs": true}');
    expect(parseOptions([]).sampling).toEqual({ temperature: 1 });
    expect(parseOptions(['--logprobs']).sampling).toEqual({ temperature: 1, logprobs: true });
    expect(parseOptions(['--sampling', file, '--top-p', '0.9']).sampling).toEqual({
      temperature: 0.2,
      topK: 20,
      topP: 0.9,
      logprobs: true,
    });
    expect(parseOptions(['--sampling', file, '--temperature', '0']).sampling.temperature).toBe(0);
    writeFileSync(file, '{"topk": 20}');
    expect(catchMessage('--sampling', file)).toMatch(/--sampling.*topk: property topk should not exist/);
    rmSync(folder, { recursive: true });
  });

  it('takes several engines', () => {
    expect(parseOptions(['--engine', 'http://a:1/', '--engine', 'https://b:2/x']).engineUrls).toEqual([
      'http://a:1',
      'https://b:2/x',
    ]);
  });

  it.each([
    [['--frobnicate'], /unknown option '--frobnicate'/],
    [['extra'], /too many arguments/],
    [['--groups', '0'], /--groups.*whole number from 1/],
    [['--groups', '1.5'], /--groups.*whole number/],
    [['--groups', 'many'], /--groups.*whole number/],
    [['--groups'], /--groups.*argument missing/],
    [['--samples', '129'], /--samples.*128/],
    [['--steps', 'some'], /--steps.*"all"/],
    [['--steps', '0'], /--steps/],
    [['--over-provision', '0.99'], /--over-provision.*number from 1/],
    [['--over-provision', 'NaN'], /--over-provision/],
    [['--tail-policy', 'drop'], /--tail-policy.*wait, regenerate, resume, drip, fixed-concurrency/],
    [['--concurrency', '8'], /--concurrency.*only for the policy fixed-concurrency/],
    [['--tail-policy', 'drip', '--drip-groups', '33'], /--drip-groups.*a step has 32 groups/],
    [['--max-longtail-share', '0'], /--max-longtail-share.*could ever be trained/],
    [['--on-cut', 'burn'], /--on-cut.*keep, discard/],
    [['--seed', '-1'], /--seed|argument missing/],
    [['--temperature', '-1'], /--temperature|argument missing/],
    [['--top-p', '1.1'], /--top-p.*from 0 to 1/],
    [['--sampling', '/no/such/file'], /--sampling.*cannot be read as JSON/],
    [['--sampling', __filename], /--sampling.*cannot be read as JSON/],
    [['--model', 'm'], /--model is for real engines/],
    [['--lengths', 'huge'], /--lengths.*math-short-16k/],
    [['--compare', 'wait,never'], /--compare.*"never" is none of wait/],
    [['--compare', 'auto', '--rebalance', 'on'], /--compare cannot be combined with --rebalance/],
    [
      ['--engine', 'http://a:1', '--lengths', 'think-32k', '--sample-over-provision', '1.5'],
      /--lengths with --engine.*--sample-over-provision/,
    ],
    [['--speed', '0'], /--speed/],
    [['--engine', 'localhost:8000'], /--engine.*http:\/\//],
    [['--engine', 'nonsense'], /--engine.*an address/],
    [['--engine', 'http://a:1', '--engine', 'http://a:1/'], /--engine.*named twice/],
    [['--engine', 'http://a:1', '--engines', '4'], /--engines is for simulated engines/],
    [['--pool', 'a b'], /--pool/],
    [['--job', 'x'.repeat(10_240)], /--job/],
    [['--report', '/no/such/folder/r.json'], /--report.*no folder/],
    [['--results', tmpdir()], /--results.*is a folder/],
    [['--continue', '--results', ABSENT], /--continue needs --job/],
    [['--continue', '--job', 'j'], /--continue needs --job and --results/],
    [['--report', ABSENT, '--results', ABSENT], /same file/],
    [['--prompts', __filename, '--results', __filename], /--results would overwrite the file of --prompts/],
    [['--prompts', relative('.', __filename), '--report', __filename], /--report would overwrite/],
  ])('refuses %j with one line', (argv, message) => {
    const text = catchMessage(...argv);
    expect(text).toMatch(message);
    expect(text).not.toContain('\n');
  });

  it('prints help with examples', () => {
    expect(() => parseOptions(['--help'])).toThrow(HelpRequested);
    try {
      parseOptions(['--help']);
    } catch (error) {
      expect((error as Error).message).toMatch(/--over-provision[\s\S]*Examples:[\s\S]*npm start -- --once/);
    }
  });
});
