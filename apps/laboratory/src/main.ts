import { Command } from 'commander';
import { frontierCommand } from './commands/frontier.command';
import { headlineCommand } from './commands/headline.command';

/** `npm run lab -- COMMAND`: the policies of production on simulated engines, in virtual time. */
const program = new Command('lab')
  .description('Simulates rollouts under the policies of production, in virtual time. See docs/laboratory.md.')
  .showHelpAfterError();
for (const add of [headlineCommand, frontierCommand]) add(program);
program.parseAsync().catch((error: unknown) => {
  console.error(error instanceof Error ? (error.stack ?? error.message) : error);
  process.exitCode = 1;
});
