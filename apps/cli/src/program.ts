import { Command, Help, Option } from 'commander';
// An import of the whole library would double the time that a command takes to start.
import { VERSION } from '../../../libs/platform/src/project';
import { checkTexts, durationOption } from './arguments';
import { addAudit } from './commands/audit';
import { addCompletion } from './commands/completion';
import { addConfig } from './commands/config';
import { addDecisions } from './commands/decisions';
import { addEvents } from './commands/events';
import { addJobs } from './commands/jobs';
import { addLogLevel } from './commands/log-level';
import { addRebalance } from './commands/rebalance';
import { addRequests } from './commands/requests';
import { addRounds } from './commands/rounds';
import { addServers } from './commands/servers';
import { addStatus } from './commands/status';
import { addTail } from './commands/tail';
import { addTokens } from './commands/tokens';
import { addWeights } from './commands/weights';
import { addWorkers } from './commands/workers';
import { describeFailure, EXIT } from './failures';
import { actOn, type Terminal } from './session';
import { layout, printable } from './tables';

/** Width of the help where no terminal has a width. */
const HELP_COLUMNS = 80;
/** Columns that an explanation needs to be wrapped beside its command. */
const MIN_HELP_COLUMNS = 20;
const EXIT_CODES = `
Exit codes: 0 done; 1 refused, or a check that failed; 2 wrong usage;
3 no reply of admin-api. Ids of requests are JOB/GROUP/SAMPLE; durations are
500ms, 90s, 5m, 2h or 1d. docs/cli.md lists every command.`;

/** @param isJson errors are printed as JSON by {@link run}, so commander prints none */
export function createProgram(terminal: Terminal, isJson = false): Command {
  const program = new Command('broomwagon')
    .description('Shows and changes what Broomwagon runs, through the REST API (admin-api).')
    .addOption(
      new Option('--url <address>', 'address of admin-api').env('BROOMWAGON_URL').default('http://127.0.0.1:8080'),
    )
    .addOption(
      new Option('--token <token>', 'bearer token; prefer the variable: lists of processes show options').env(
        'BROOMWAGON_TOKEN',
      ),
    )
    .addOption(new Option('--pool <name>', 'pool (default: the only one)').env('BROOMWAGON_POOL'))
    .option('--json', 'print JSON instead of tables')
    .option('--yes', 'do not ask for confirmation')
    .addOption(durationOption('--timeout <duration>', 'maximum duration of a call', '30s'))
    .version(VERSION, '--version', 'print the version')
    .addHelpText('after', EXIT_CODES)
    .configureHelp({
      showGlobalOptions: true,
      minWidthToWrap: MIN_HELP_COLUMNS,
      optionDescription: (option) => `${new Help().optionDescription(option)}${option.mandatory ? ' (required)' : ''}`,
    })
    .configureOutput({
      writeOut: (text) => void terminal.stdout.write(text),
      writeErr: (text) => void (isJson || terminal.stderr.write(text)),
      getOutHelpWidth: () => terminal.stdout.columns ?? HELP_COLUMNS,
      getErrHelpWidth: () => terminal.stdout.columns ?? HELP_COLUMNS,
    })
    .showHelpAfterError('(add --help for the options)')
    .hook('preAction', (_, command) => checkTexts(command))
    .exitOverride();
  const act = actOn(terminal);
  const running = [addStatus, addServers, addWorkers, addRequests, addJobs, addRounds, addTail, addRebalance];
  const watched = [addWeights, addConfig, addEvents, addAudit, addDecisions, addLogLevel, addTokens, addCompletion];
  for (const add of [...running, ...watched]) add(program, act);
  return program;
}

export async function run(argv: readonly string[], terminal: Terminal): Promise<number> {
  const program = createProgram(terminal, argv.includes('--json'));
  layout.columns = terminal.stdout.columns ?? Infinity;
  try {
    await program.parseAsync(argv, { from: 'user' });
    return EXIT.done;
  } catch (failure) {
    const { exitCode, text } = describeFailure(failure, argv.includes('--json'));
    terminal.stderr.write(printable(text));
    return exitCode;
  }
}
