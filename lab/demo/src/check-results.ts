import { createReadStream } from 'node:fs';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { splitLines } from '../../reference-trainer/src/jsonl/lines';
import { checkResults, type CheckOutcome } from './checker/check';
import { decodeBy } from './checker/decode-by-engine';
import { EngineClient } from './checker/engine-client';
import { JoinCheck, type JoinOutcome } from './checker/join-check';
import { scoreBy } from './checker/score-by-engine';
import { DEFAULTS } from './options/trainer-options';

/**
 * `npm run check-results -- PROMPTS RESULTS`: checks that results have every sample of every prompt exactly once. Reads
 * only the two files; an engine decodes and scores their token ids. Exit code 0: the results are complete, 1: they are
 * not, 2: the check was not possible.
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
    .option('--engine <url>', 'vLLM or SGLang that reads the results again: texts, and log probabilities at joins')
    .option('--scored <n>', 'resumed samples that --engine scores', count, 256)
    .option('--json', 'print the result as JSON', false)
    .exitOverride();
  try {
    command.parse(argv, { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    throw error;
  }
  const [prompts, results] = command.args as [string, string];
  const { samples, steps, groups, json, engine, scored, ...options } = command.opts<{
    samples?: number;
    first?: number;
    steps?: number;
    groups: number;
    json: boolean;
    engine?: string;
    scored: number;
  }>();
  const first = steps === undefined ? options.first : steps * groups;
  try {
    const client = engine === undefined ? undefined : new EngineClient(engine, process.env.ENGINE_API_KEY);
    const outcome = await checkResults(readTextLines(prompts), readTextLines(results), {
      samples,
      first,
      decode: client && decodeBy(client),
      joins: client && new JoinCheck(await scoreBy(client), scored),
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
    ...(outcome.joins === undefined ? [] : joinLines(outcome.joins)),
    ...outcome.problems.map((problem) => `  ${problem}`),
    outcome.ok ? 'ok: every sample of every prompt exactly once' : 'NOT ok',
  ].join('\n');
}

function joinLines({ resumed, whole, joins, misfits, elsewhere, largestFit, control, skipped }: JoinOutcome): string[] {
  return [
    `joins of ${resumed} resumed samples, scored with ${whole} whole ones: ${joins} compared, ${misfits} do not fit`,
    `  differences: ${elsewhere.toFixed(3)} nats elsewhere, at most ${largestFit.toFixed(3)} around a join that fits; a ` +
      `token left out was seen in ${control.found} of ${control.harmed} samples`,
    ...skipped.map(({ reason, tokens }) => `  ${tokens} tokens not compared: ${reason}`),
  ];
}

function count(text: string): number {
  if (!/^[1-9]\d*$/.test(text)) throw new InvalidArgumentError('It must be a whole number from 1.');
  return Number(text);
}

void main(process.argv.slice(2)).then((code) => {
  process.exitCode = code;
});
