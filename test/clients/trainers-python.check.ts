import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EngineDialect } from '@broomwagon/contracts';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { inject } from '../../lab/engine-simulator/src/test-engine';
import { pythonBlocks, pythonEnvironment } from '../python/pytest';
import { Gateway } from '../system/gateway';
import { ServiceBench } from '../system/service-bench';
import { printedBy, python, startScript } from './python';
import { readmeLines } from './readme';

// Each script imports the published package of a trainer, with empty modules in place of torch and ray.
describe.skipIf(python === undefined)('the own HTTP client', () => {
  let bench: ServiceBench;
  let gateway: Gateway;

  beforeAll(async () => {
    bench = await ServiceBench.open({}, 60);
  });
  afterAll(() => bench?.close());
  afterEach(async () => {
    await gateway.close();
    await bench.engine.close();
    expect(await bench.findings()).toEqual([]);
  });

  async function begin(dialect: EngineDialect, speed = 10): Promise<void> {
    await bench.begin(() => 8_000, speed, dialect);
    await bench.register({ dialect, model: 'simulated', capabilities: { maxModelTokens: 4_096 } });
    gateway = await Gateway.start(bench.prefix, bench.pool);
  }

  /**
   * Runs a script, and returns the JSON that it prints at its end. The standard input of the script ends when the
   * gateway has the first tokens of an engine.
   */
  async function run(script: string, ...args: string[]) {
    const environment = { AREAL_LLM_SERVER_ADDRS: gateway.url.replace('http://', '') };
    const running = startScript(`trainers/${script}`, args, environment);
    const firstTokens = expect.poll(() => gateway.metric('tokens_generated_total'), { timeout: 60_000 });
    const [printed] = await Promise.all([
      running,
      firstTokens.toBeGreaterThan(0).then(() => running.child.stdin!.end()),
    ]);
    return printedBy(printed);
  }

  it('of miles runs a step, aborts the running samples, and continues them in the next step', async () => {
    await begin('sglang');
    await inject(bench.engine.url, { kind: 'stall', afterTokens: 3 });
    const { first, partial, second, rest } = await run('miles_client.py', '127.0.0.1', `${gateway.service.httpPort}`);
    const complete = { status: 'truncated', tokens: 20, all: 20, logprobs: 20, versions: ['0'] };
    expect(first).toMatchObject([complete, complete]);
    expect(partial).toContainEqual(expect.objectContaining({ status: 'aborted', tokens: 3, all: 3, logprobs: 3 }));
    expect(second).toMatchObject([complete, complete]);
    expect(second.map(({ index }: { index: number }) => index)).toEqual(
      partial.map(({ index }: { index: number }) => index),
    );
    expect(rest).toEqual([]);
  });

  describe('of SkyRL', () => {
    it('generates tokens with log probabilities, and ends the session', async () => {
      await begin('vllm');
      const both = { stop_reasons: ['length', 'length'], tokens: [5, 5], logprobs: [5, 5], texts: [true, true] };
      expect(await run('skyrl_client.py', 'generate', gateway.url)).toEqual(both);
    });

    it('samples as Tinker, and speaks the routes of OpenAI', async () => {
      await begin('vllm');
      expect(await run('skyrl_client.py', 'sample', gateway.url)).toEqual([[3, 3, 'length']]);
      const answers = { chat: 'length', completion: 4, tokenized: true };
      expect(await run('skyrl_client.py', 'openai', gateway.url)).toEqual(answers);
    });

    it('pauses, updates and resumes the engines while it generates', async () => {
      await begin('vllm');
      const both = { statuses: [200, 200, 200], stop_reasons: ['length', 'length'] };
      expect(await run('skyrl_client.py', 'pause', gateway.url)).toEqual(both);
    });
  });

  it('of prime-rl generates two turns with its cache salt, and reads the length of the context', async () => {
    await begin('vllm');
    const turn = ['length', true, 5, 5];
    expect(await run('prime_client.py', `${gateway.url}/v1`)).toEqual([turn, turn]);
  });

  describe.each(['sglang', 'vllm'] as const)('of AReaL, for engines of %s,', (dialect) => {
    it('waits for the server and generates', async () => {
      await begin(dialect);
      const response = { stop_reason: 'length', input: [11, 12, 13], tokens: 5, logprobs: 5, versions: [0] };
      expect(await run('areal_client.py', dialect, 'generate')).toEqual(response);
    });

    it('continues a response that its pause has aborted, with the next weights', async () => {
      await begin(dialect, 1);
      const { tokens, logprobs, versions } = await run('areal_client.py', dialect, 'pause');
      expect([tokens, logprobs, versions]).toEqual([600, 600, [0, 1]]);
    });
  });
});

const absent = (checkout: string | undefined, name: string) =>
  checkout === undefined ? ` (skipped: ${name}_CHECKOUT names no checkout)` : '';

/** Release of a package of a trainer. */
const requirement = (name: string): string =>
  new RegExp(`^${name}==([\\d.]+)`, 'm').exec(readFileSync('test/clients/trainers/requirements.txt', 'utf8'))![1]!;

describe.skipIf(python === undefined)('the own configuration code', () => {
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-trainers-'));
  const file = (name: string) => join(folder, name);
  afterAll(() => rmSync(folder, { recursive: true }));

  const read = async (script: string, lines: string[], environment?: Record<string, string>) =>
    printedBy(await startScript(`trainers/${script}`, lines, environment));

  it('of SkyRL takes the lines of README.md', async () => {
    const lines = readmeLines('SkyRL');
    expect(await read('skyrl_config.py', lines)).toEqual({ url: 'http://127.0.0.1:30000', model: 'my-model' });
    const [colocation, ...others] = lines;
    expect(colocation).toBe('trainer.placement.colocate_all=false');
    expect((await read('skyrl_config.py', others)).error).toContain('colocate_all=true');
  });

  it('of OpenRLHF takes the agent of its guide', async () => {
    const guide = readFileSync('docs/trainers/openrlhf.md', 'utf8');
    expect(guide).toContain(`OpenRLHF ${requirement('openrlhf')}`);
    const [option, path] = /^--.*$/m.exec(guide)![0].split(' ');
    expect(path).toBe('/path/agent.py');
    const [agent] = pythonBlocks('docs/trainers/openrlhf.md');
    writeFileSync(file('agent.py'), agent!);
    const models = ['--actor.model_name_or_path', 'my-model', '--reward.model_name_or_path', 'my-model'];
    const { PYTHONPATH } = pythonEnvironment().env;
    const printed = await read('openrlhf_config.py', [...models, option!, file('agent.py')], { PYTHONPATH });
    expect(printed).toMatchObject({ agent: file('agent.py'), reward: ['agent'] });
    expect(printed.bases).toContain('MultiTurnAgentExecutor');
  });

  const prime = process.env.PRIME_RL_CHECKOUT;
  it.skipIf(prime === undefined)(`of prime-rl takes the lines of README.md${absent(prime, 'PRIME_RL')}`, async () => {
    const readSettings = (lines: readonly string[]) => {
      writeFileSync(file('rl.toml'), lines.join('\n'));
      return read('prime_config.py', [file('rl.toml')]);
    };
    const lines = readmeLines('prime-rl');
    const url = 'http://127.0.0.1:30000/v1';
    const headers = { 'X-Broomwagon-Job': 'run-1' };
    const client = { url, key: 'BROOMWAGON_KEY', headers, adminUrls: null, startsEngines: false };
    expect(await readSettings(lines)).toEqual(client);
    // With engines of its own, prime-rl sends updates past the gateway, as README.md explains.
    const { adminUrls, startsEngines } = await readSettings([...lines, '[inference]']);
    expect([adminUrls, startsEngines]).toEqual([[expect.stringContaining('localhost')], true]);
    const misspelled = lines.map((line) => line.replace('base_url', 'base_ulr'));
    expect((await readSettings(misspelled)).error).toContain('base-ulr');
  });

  const slime = process.env.SLIME_CHECKOUT;
  it.skipIf(slime === undefined)(`of slime takes the lines of README.md${absent(slime, 'SLIME')}`, async () => {
    const [ip, port, policy] = readmeLines('slime').map((line) => line.split(' '));
    expect(await read('slime_config.py', [...ip!, ...port!])).toMatchObject({ ip: '127.0.0.1', port: 30_000 });
    // The router package of slime's images, which no package index has, knows this policy.
    expect(policy).toEqual(['--router-policy', 'consistent_hashing']);
    expect((await read('slime_config.py', policy!)).error).toContain("invalid choice: 'consistent_hashing'");
    const version = requirement('sglang-router');
    expect(readFileSync('README.md', 'utf8')).toContain(`\`sglang-router\` ${version} of the package index refuses`);
  });

  it('of AReaL takes the lines of README.md', async () => {
    const lines = readmeLines('AReaL').filter((line) => !line.startsWith('export '));
    expect(await read('areal_config.py', lines)).toEqual({ backend: 'sglang:d1', requestTimeout: 14_400 });
    const { error } = await read('areal_config.py', ['rollout.request_time=1']);
    expect(error).toContain('request_time');
  });
});
