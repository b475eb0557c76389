import { isBroomwagonError } from '@broomwagon/contracts';
import { Command } from 'commander';
import { agentsCommand } from './commands/agents.command';
import { autoCommand } from './commands/auto.command';
import { frontierCommand } from './commands/frontier.command';
import { headlineCommand } from './commands/headline.command';
import { recordCommand } from './commands/record.command';
import { scaleCommand } from './commands/scale.command';
import { sensitivityCommand } from './commands/sensitivity.command';
import { turnsCommand } from './commands/turns.command';
import { validateCommand } from './commands/validate.command';
import { whatifCommand } from './commands/whatif.command';

/** `npm run lab -- COMMAND`: the policies of production on simulated engines, in virtual time. */
const program = new Command('lab')
  .description('Simulates rollouts under the policies of production, in virtual time. See docs/laboratory.md.')
  .showHelpAfterError();
const COMMANDS = [
  headlineCommand,
  frontierCommand,
  autoCommand,
  whatifCommand,
  recordCommand,
  validateCommand,
  scaleCommand,
  sensitivityCommand,
  turnsCommand,
  agentsCommand,
];
for (const add of COMMANDS) add(program);
program.parseAsync().catch((error: unknown) => {
  console.error(describe(error));
  process.exitCode = 1;
});

/** Wrong input prints its error only; any other error prints its stack. */
function describe(error: unknown): string {
  if (isBroomwagonError(error)) return `${error.code}: ${error.message}`;
  if (error instanceof RangeError || (error instanceof Error && 'code' in error)) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
