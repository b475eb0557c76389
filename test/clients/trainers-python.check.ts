import type { EngineDialect } from '@broomwagon/contracts';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { inject } from '../../lab/engine-simulator/src/test-engine';
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

describe.skipIf(python === undefined)('the own configuration code', () => {
  const read = async (script: string, lines: string[]) => printedBy(await startScript(`trainers/${script}`, lines));

  it('of SkyRL takes the lines of README.md', async () => {
    const lines = readmeLines('SkyRL');
    expect(await read('skyrl_config.py', lines)).toEqual({ url: 'http://127.0.0.1:30000', model: 'my-model' });
    const [colocation, ...others] = lines;
    expect(colocation).toBe('trainer.placement.colocate_all=false');
    expect((await read('skyrl_config.py', others)).error).toContain('colocate_all=true');
  });

  it('of AReaL takes the lines of README.md', async () => {
    const lines = readmeLines('AReaL').filter((line) => !line.startsWith('export '));
    expect(await read('areal_config.py', lines)).toEqual({ backend: 'sglang:d1', requestTimeout: 14_400 });
    const { error } = await read('areal_config.py', ['rollout.request_time=1']);
    expect(error).toContain('request_time');
  });
});
