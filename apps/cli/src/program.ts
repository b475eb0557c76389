import { Command, Help, Option } from 'commander';
// An import of the whole library would double the time that a command takes to start.
import { VERSION } from '../../../libs/platform/src/project';
import { checkTexts, durationOption } from './arguments';
import { addAudit } from './commands/audit';
import { addConfig } from './commands/config';
import { addDecisions } from './commands/decisions';
import { addEvents } from './commands/events';
import { addLogLevel } from './commands/log-level';
import { addRebalance } from './commands/rebalance';
import { addRequests } from './commands/requests';
import { addRounds } from './commands/rounds';
import { addServers } from './commands/servers';
import { addStatus } from './commands/status';
import { addTail } from './commands/tail';
import { addTokens } from './commands/tokens';
import { describeFailure, EXIT } from './failures';
import { actOn, type GlobalOptions, type Terminal } from './session';
import { printable } from './tables';

const EXIT_CODES = `
Exit codes: 0 done; 1 refused, or a check that failed; 2 wrong usage; 3 no reply of admin-api.
Ids of requests are JOB/GROUP/SAMPLE; durations are 500ms, 90s, 5m, 2h or 1d. docs/cli.md lists every command.`;

export function createProgram(terminal: Terminal): Command {
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
      optionDescription: (option) => `${new Help().optionDescription(option)}${option.mandatory ? ' (required)' : ''}`,
    })
    .configureOutput({
      writeOut: (text) => void terminal.stdout.write(text),
      writeErr: (text) => void terminal.stderr.write(text),
    })
    .showHelpAfterError('(add --help for the options)')
    .hook('preAction', (_, command) => checkTexts(command))
    .exitOverride();
  const act = actOn(terminal);
  const groups = [addStatus, addServers, addRequests, addRounds, addTail, addRebalance, addConfig];
  for (const add of [...groups, addEvents, addAudit, addDecisions, addLogLevel, addTokens]) add(program, act);
  return program;
}

export async function run(argv: readonly string[], terminal: Terminal): Promise<number> {
  const program = createProgram(terminal);
  try {
    await program.parseAsync(argv, { from: 'user' });
    return EXIT.done;
  } catch (failure) {
    const { exitCode, text } = describeFailure(failure, program.opts<GlobalOptions>().json === true);
    terminal.stderr.write(printable(text));
    return exitCode;
  }
}
