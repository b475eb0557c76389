import 'reflect-metadata';
import { writeFile } from 'node:fs/promises';
import { isBroomwagonError } from '@broomwagon/contracts';
import { HelpRequested, parseOptions } from './options/parse-options';
import type { TrainerOptions } from './options/trainer-options';
import { UsageError } from '../../reference-trainer/src/usage-error';
import { ProgressDisplay } from './progress/progress-display';
import { selectDataSet, checkPromptKinds, EXAMPLE_PROMPTS } from './prompts/data-set';
import { readPrompts } from '../../reference-trainer/src/prompts/prompt-reader';
import { prepareLengths } from './prompts/equal-lengths';
import { reportText } from './report/screen';
import { ReferenceRun, type RunPrompts } from './run';
import { computeLoad } from './system/environments';
import { findEngines, type FleetEngine } from '../../reference-trainer/src/fleet/fleet';
import { Interruption, Interrupted } from './system/interruption';
import { RolloutSystem, type StartedSystem } from './system/rollout-system';
import { RunFailure } from './system/run-failure';

const EXIT = { done: 0, failed: 1, usage: 2 } as const;

async function main(argv: readonly string[]): Promise<number> {
  const display = new ProgressDisplay(process.stdout);
  const say = (line: string): void => display.say(line);
  const interruption = new Interruption(say);
  try {
    const options = parseOptions(argv);
    const source = options.prompts ?? EXAMPLE_PROMPTS;
    const prompts = await interruption.or(readPrompts(source));
    const dataSet = selectDataSet(prompts, options);
    const engines = await interruption.or(
      findEngines(options.engineUrls, (index) => `engine-${index + 1}`, {
        apiKey: process.env.ENGINE_API_KEY,
        model: options.model,
      }),
    );
    checkPromptKinds(engines, dataSet);
    const lengths = await interruption.or(prepareLengths(options, engines, dataSet));
    return await rollOut(options, { dataSet, lengths }, engines, display, interruption);
  } catch (error) {
    if (error instanceof HelpRequested) process.stdout.write(error.message);
    else if (error instanceof Interrupted) return error.exitCode;
    else if (error instanceof UsageError) process.stderr.write(`${error.message}\n`);
    else process.stderr.write(`${describe(error)}\n`);
    return error instanceof HelpRequested ? EXIT.done : error instanceof UsageError ? EXIT.usage : EXIT.failed;
  }
}

async function rollOut(
  options: TrainerOptions,
  prompts: RunPrompts,
  engines: readonly FleetEngine[],
  display: ProgressDisplay,
  interruption: Interruption,
): Promise<number> {
  const say = (line: string): void => display.say(line);
  const load = computeLoad(options);
  const system = new RolloutSystem(options, load, say);
  interruption.onSecond(() => system.kill());
  let keepFolder = false;
  try {
    const work = async (): Promise<number> => {
      const started = await system.start(engines);
      const recording = options.recordEvents === undefined ? undefined : await system.record(options.recordEvents);
      const { folder } = system;
      const { signal } = interruption;
      const report = await new ReferenceRun(options, prompts, started, display, folder, load.speed, signal).run();
      await recording?.stop();
      say(reportText(report));
      if (options.report !== undefined) await writeFile(options.report, `${JSON.stringify(report, null, 2)}\n`);
      sayWhere(options, system, say);
      if (!options.once) {
        sayConnect(started, say);
        interruption.exitsCleanly();
        await new Promise<never>(() => undefined);
      }
      return report.totals.lost + report.totals.duplicated + report.totals.faulty === 0 ? EXIT.done : EXIT.failed;
    };
    return await interruption.or(Promise.race([work(), system.supervisor.failed]));
  } catch (error) {
    display.clear();
    if (error instanceof Interrupted) throw error;
    keepFolder = true;
    process.stderr.write(`${describe(error)}\nLogs and files stay in ${system.folder} (logs: ${system.logFolder})\n`);
    return EXIT.failed;
  } finally {
    await system.stop({ keepFolder });
  }
}

function sayWhere(options: TrainerOptions, system: RolloutSystem, say: (line: string) => void): void {
  if (options.report !== undefined) say(`Report:  ${options.report}`);
  if (options.results !== undefined) say(`Results: ${options.results}`);
  if (options.recordEvents !== undefined) say(`Events:  ${options.recordEvents}`);
  if (options.keepLogs !== undefined) say(`Logs:    ${system.logFolder}`);
  else if (!options.once) say(`Logs:    ${system.logFolder} (deleted at the end; --keep-logs FOLDER keeps them)`);
}

function sayConnect(system: StartedSystem, say: (line: string) => void): void {
  say('');
  say('The system keeps running. Connect your own trainer or workers:');
  const { REDIS_URL, ...nats } = system.settingsOf('admin');
  const variables = Object.entries({ ...nats, POOL: system.pool }).map(([name, value]) => `${name}=${value}`);
  say(`  export ${variables.join(' ')}`);
  say(`  REDIS_URL=${REDIS_URL}`);
  for (const { serverId, dialect, endpoint } of system.fleet.engines) say(`  ${serverId}: ${endpoint} (${dialect})`);
  say('Ctrl-C ends everything.');
}

function describe(error: unknown): string {
  if (error instanceof RunFailure) return [error.message, ...error.advice].join('\n');
  if (isBroomwagonError(error)) return `${error.code}: ${error.message}`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

void main(process.argv.slice(2)).then((code) => process.exit(code));
