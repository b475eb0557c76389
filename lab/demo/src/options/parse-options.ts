import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { idFault, LIMITS, MAX_ID_BYTES, POOL_PATTERN, TAIL_POLICIES, type TailPolicyName } from '@broomwagon/contracts';
import { LENGTH_PRESETS } from '@broomwagon/models';
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander';
import { holdsSteps } from '../../../reference-trainer/src/results/results-file';
import { DEFAULTS, type TrainerOptions } from './trainer-options';
import { decimal, integer } from './numbers';
import { addSamplingOptions, takeSampling } from './sampling-options';
import { addRebalanceOptions, withPreset } from './rebalance-options';
import { addTailOptions, checkTail, takeTail } from './tail-options';
import { UsageError } from '../../../reference-trainer/src/usage-error';

const EXAMPLES = `
Examples:
  npm start                                        example prompts on simulated engines; stays up until Ctrl-C
  npm start -- --once --report report.json         the same, ends after the report
  npm start -- --once --via gateway                the same, with a trainer that uses only HTTP
  npm start -- --once --preset ascend              the published rebalance, with and without moves
  npm start -- --once --prompts my.jsonl --steps all --results out.jsonl
  npm start -- --once --prompts my.jsonl --steps all --results out.jsonl --job my-job --continue
  npm start -- --engine http://127.0.0.1:8000 --engine http://127.0.0.1:8001 --prompts my.jsonl --max-tokens 2048
  npm start -- --once --engine http://127.0.0.1:8000 --lengths math-short-8k --compare wait,auto   (docs/gpu.md)
  cat my.jsonl | npm start -- --once --prompts - --tail-policy regenerate

Prompts are one JSON object a line: "prompt" (text), or OpenAI "messages", or "promptTokenIds"; optional "id",
"domain", "engineFields" and "answer" (not sent anywhere). NATS_URL and REDIS_URL name servers to use instead of private ones.`;

/** Error that ends a request for help: its text goes to standard output, and the exit code is 0. */
export class HelpRequested extends Error {
  override readonly name = 'HelpRequested';
}

/**
 * Reads the command line (without node and script).
 * @throws UsageError one message that names the option; HelpRequested with the help text.
 */
export function parseOptions(argv: readonly string[]): TrainerOptions {
  let output = '';
  const command = trainerCommand();
  command.exitOverride().configureOutput({
    writeOut: (text) => (output += text),
    writeErr: () => undefined,
  });
  try {
    command.parse([...argv], { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.code === 'commander.helpDisplayed') throw new HelpRequested(output);
    throw new UsageError(`${error.message.replace(/^error: /, '').replaceAll('\n', ' ')} (see --help)`);
  }
  const { engine, ...given } = command.opts<Record<string, unknown> & { engine: string[] }>();
  const { tail, rest: besideTail } = takeTail(given);
  const { sampling, rest } = takeSampling(besideTail);
  const isGiven = (name: string): boolean => command.getOptionValueSource(name) === 'cli';
  const equalLengths = engine.length > 0 && isGiven('lengths');
  const options = withPreset({ ...rest, engineUrls: engine, tail, sampling, equalLengths } as TrainerOptions, isGiven);
  checkTail(options);
  checkTogether(options, isGiven);
  return options;
}

function trainerCommand(): Command {
  const command = new Command('npm start --')
    .description('Starts the whole system, rolls out prompts, cuts and requeues the long tail, and prints a report.')
    .usage('[options]')
    .allowExcessArguments(false)
    .option('--prompts <file>', 'JSONL file with one prompt a line; - for standard input (default: example prompts)')
    .option('--engine <url>', 'a real vLLM, SGLang or OpenAI-compatible server; repeatable', addUrl, [] as string[])
    .option('--engines <n>', 'simulated engines', integer(1, 1_000), DEFAULTS.engines)
    .option('--steps <n|all>', `training steps (default: ${DEFAULTS.steps}, or all when there are fewer)`, steps)
    .option('--groups <n>', 'groups a training step needs', integer(1, LIMITS.groupsPerRound), DEFAULTS.groups)
    .option('--samples <n>', 'samples per group', integer(1, LIMITS.samplesPerGroup), DEFAULTS.samples)
    .option('--over-provision <x>', 'launched / needed groups', decimal(1, 16), DEFAULTS.overProvision)
    .addOption(
      new Option('--tail-policy <name>', 'what happens to the tail of a round')
        .choices(TAIL_POLICIES)
        .default(DEFAULTS.tailPolicy),
    )
    .option(
      '--seed <n>',
      `seed of sampling (default: engines draw their own) or of simulated lengths (default: ${DEFAULTS.seed})`,
      integer(0, 2 ** 31 - 1),
    )
    .addOption(
      new Option('--via <way>', 'how the trainer calls its operations: over NATS, or over HTTP by a gateway')
        .choices(['nats', 'gateway'])
        .default('nats'),
    )
    .option('--once', 'stop everything after the report', false)
    .option('--report <file>', 'write the report as JSON', writablePath)
    .option('--record-events <file>', 'write every event, for `npm run lab -- whatif`', writablePath)
    .option('--results <file>', 'write one line per trained sample', writablePath)
    .option('--continue', 'continue --job after the steps in --results; no baseline', false)
    .option('--max-tokens <n>', 'token budget of one sample', integer(1, LIMITS.maxTokens))
    .option('--model <name>', 'model of --engine to use (default: the first that each engine lists)')
    .option('--speed <x>', 'simulated seconds per second (default: depends on the load)', decimal(0.1, 100_000))
    .addOption(
      new Option('--lengths <preset>', 'response lengths of simulated engines; with --engine see docs/gpu.md')
        .choices(Object.keys(LENGTH_PRESETS))
        .default(DEFAULTS.lengths),
    )
    .option('--compare <policies>', 'tail policies that roll out the same prompts, too', policies, ['wait'])
    .option('--no-baseline', 'do not run the same prompts again')
    .option('--pool <name>', 'name of the pool', poolName)
    .option('--job <id>', 'id of the job (default: a new one)', jobId)
    .option('--workers <n>', 'worker processes', integer(1, 64), DEFAULTS.workers)
    .option('--keep-logs <folder>', 'keep the logs of all processes here', logFolder)
    .addHelpText('after', EXAMPLES);
  return addTailOptions(addRebalanceOptions(addSamplingOptions(command)));
}

function checkTogether(options: TrainerOptions, given: (name: string) => boolean): void {
  if (options.model !== undefined && options.engineUrls.length === 0) {
    throw new UsageError('--model is for real engines and needs --engine (see --help)');
  }
  if (options.engineUrls.length > 0) {
    for (const [name, flag] of [
      ['engines', '--engines'],
      ['speed', '--speed'],
      ['preset', '--preset'],
    ] as const) {
      if (given(name))
        throw new UsageError(`${flag} is for simulated engines and cannot be combined with --engine (see --help)`);
    }
  }
  if (options.equalLengths && options.tail.sampleOverProvision !== undefined) {
    throw new UsageError('--lengths with --engine cannot be combined with --sample-over-provision (see --help)');
  }
  if (given('compare') && options.rebalance !== 'off') {
    throw new UsageError(
      '--compare cannot be combined with --rebalance, which compares with a run without (see --help)',
    );
  }
  if (options.report !== undefined && options.report === options.results) {
    throw new UsageError('--report and --results name the same file (see --help)');
  }
  if (options.continue && (options.job === undefined || options.results === undefined)) {
    throw new UsageError('--continue needs --job and --results of the run to continue (see --help)');
  }
  if (!options.continue && options.results !== undefined && holdsSteps(options.results)) {
    throw new UsageError(
      `${options.results} contains trained steps; use --continue to continue after them (see --help)`,
    );
  }
  for (const name of ['report', 'results'] as const) {
    if (isSameFile(options[name], options.prompts)) {
      throw new UsageError(`--${name} would overwrite the file of --prompts (see --help)`);
    }
  }
}

/** Whether both paths name one file, also through a link or a hard link. */
function isSameFile(path: string | undefined, other: string | undefined): boolean {
  if (path === undefined || other === undefined) return false;
  const [one, two] = [path, other].map((name) => statSync(name, { throwIfNoEntry: false }));
  return one !== undefined && two !== undefined && one.dev === two.dev && one.ino === two.ino;
}

function steps(text: string): number | 'all' {
  if (text === 'all') return 'all';
  if (!/^\d+$/.test(text) || Number(text) < 1 || Number(text) > 1_000_000) {
    throw new InvalidArgumentError('It must be a whole number from 1 or "all".');
  }
  return Number(text);
}

function policies(text: string): TailPolicyName[] {
  const names = text.split(',').map((name) => name.trim()) as TailPolicyName[];
  const unknown = names.find((name) => !TAIL_POLICIES.includes(name));
  if (unknown === undefined) return [...new Set(names)];
  throw new InvalidArgumentError(`"${unknown}" is none of ${TAIL_POLICIES.join(', ')}.`);
}

function addUrl(text: string, before: string[]): string[] {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new InvalidArgumentError('It must be an address such as http://127.0.0.1:8000.');
  }
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new InvalidArgumentError('It must begin with http:// or https://.');
  }
  const address = url.href.replace(/\/+$/, '');
  if (before.includes(address)) throw new InvalidArgumentError('It is named twice.');
  return [...before, address];
}

function poolName(text: string): string {
  if (!POOL_PATTERN.test(text)) throw new InvalidArgumentError('It must be 1 to 64 letters, digits, _ or -.');
  return text;
}

/** Reads a job id, which is shorter than the protocol allows, so that ids of the baseline's job and of rounds fit. */
function jobId(text: string): string {
  const fault = idFault(text, MAX_ID_BYTES - 16);
  if (fault !== undefined) throw new InvalidArgumentError(`It ${fault}.`);
  return text;
}

function writablePath(text: string): string {
  const path = resolve(text);
  if (!existsSync(dirname(path))) throw new InvalidArgumentError(`There is no folder ${dirname(path)}.`);
  if (existsSync(path) && statSync(path).isDirectory()) throw new InvalidArgumentError('It is a folder.');
  try {
    accessSync(existsSync(path) ? path : dirname(path), constants.W_OK);
  } catch {
    throw new InvalidArgumentError('It cannot be written.');
  }
  return path;
}

function logFolder(text: string): string {
  const path = resolve(text);
  if (existsSync(path) && !statSync(path).isDirectory()) throw new InvalidArgumentError('It is not a folder.');
  return path;
}
