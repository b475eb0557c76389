import { createReadStream } from 'node:fs';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { splitLines } from '../../reference-trainer/src/jsonl/lines';
import { checkResults, type CheckOutcome } from './checker/check';
import { decodeBy } from './checker/decode-by-engine';
import { DEFAULTS } from './options/trainer-options';

/**
 * `npm run check-results -- PROMPTS RESULTS`: checks that results have every sample of every prompt exactly once. Reads
 * only the two files, and requests only texts of token ids from an engine. Exit code 0: the results are complete, 1:
 * they are not, 2: the check was not possible.
 */
async function main(argv: string[]): Promise<number> {
  const command = new Command('check-results')
    .description('Checks that a results file contains every sample of every prompt exactly once.')
    .argument('<prompts>', 'prompts file (JSONL)')
    .argument('<results>', 'results file (JSONL)')
    .option('--samples <n>', 'samples of each prompt (default: the highest index found + 1)', count)
    .option('--first <n>', 'check only the first n prompts (default: all)', count)
    .addOption(
      new Option('--steps <n>', 'only the prompts of so many training steps count').argParser(count).conflicts('first'),
    )
    .option('--groups <n>', 'groups of a training step, for --steps', count, DEFAULTS.groups)
    .option('--engine <url>', 'vLLM or SGLang that decodes token ids: each text must be that of its ids')
    .option('--json', 'print the result as JSON', false)
    .exitOverride();
  try {
    command.parse(argv, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    throw error;
  }
  const [prompts, results] = command.args as [string, string];
  const { samples, steps, groups, json, engine, ...options } = command.opts<{
    samples?: number;
    first?: number;
    steps?: number;
    groups: number;
    json: boolean;
    engine?: string;
  }>();
  const first = steps === undefined ? options.first : steps * groups;
  try {
    const outcome = await checkResults(readTextLines(prompts), readTextLines(results), {
      samples,
      first,
      decode: engine === undefined ? undefined : decodeBy(engine),
    });
    console.log(json ? JSON.stringify(outcome) : inWords(outcome));
    return outcome.ok ? 0 : 1;
  } catch (error) {
    console.error(`check-results: ${error instanceof Error ? error.message : String(error)}`);
    return 2;
  }
}

async function* readTextLines(path: string): AsyncGenerator<string> {
  const stream = createReadStream(path);
  // Waits for the file, so that a missing one is an error and not an empty list.
  await new Promise((resolve, reject) => stream.once('open', resolve).once('error', reject));
  for await (const line of splitLines(stream)) yield line.toString('utf8');
}

function inWords(outcome: CheckOutcome): string {
  const { prompts, samplesPerPrompt, expected, results, lost, duplicated, unknown, malformed, inconsistent } = outcome;
  return [
    `${prompts} prompts x ${samplesPerPrompt} samples = ${expected} expected, ${results} results`,
    `lost ${lost}, duplicated ${duplicated}, unknown ${unknown}, malformed ${malformed}, inconsistent ${inconsistent}`,
    ...outcome.problems.map((problem) => `  ${problem}`),
    outcome.ok ? 'ok: every sample of every prompt exactly once' : 'NOT ok',
  ].join('\n');
}

function count(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.');
  return Number(text);
}

void main(process.argv.slice(2)).then((code) => {
  process.exitCode = code;
});
