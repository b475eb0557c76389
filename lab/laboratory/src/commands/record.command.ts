import { createWriteStream } from 'node:fs';
import { once } from 'node:events';
import { POOL_PATTERN, type PoolName } from '@broomwagon/contracts';
import { connectNats } from '@broomwagon/messaging';
import { recordEvents } from '../events/record-events';
import { ConnectionsConfig, loadConfig } from '@broomwagon/platform';
import { InvalidArgumentError, type Command } from 'commander';

interface Options {
  pool: PoolName;
  nats?: string;
  file: string;
}

export function recordCommand(program: Command): void {
  program
    .command('record')
    .description('writes every event of a pool to a file until Ctrl-C, for whatif')
    .requiredOption('--pool <name>', 'name of the pool', poolName)
    .requiredOption('--file <file>', 'one JSON object a line')
    .option('--nats <url>', 'address of NATS; default: NATS_URL; the NATS_* settings apply')
    .action(async ({ pool, nats, file }: Options) => {
      const config = loadConfig(
        ConnectionsConfig,
        nats === undefined ? {} : { env: { ...process.env, NATS_URL: nats } },
      );
      const connection = await connectNats({ ...config.natsConfig(), name: 'laboratory' });
      const output = createWriteStream(file);
      let events = 0;
      const end = recordEvents(connection, pool, (line) => {
        events += 1;
        output.write(`${line}\n`);
      });
      console.error(`Recording the events of ${pool} to ${file}; stop with Ctrl-C.`);
      await Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM'), connection.closedForGood]);
      await end().catch(() => undefined);
      output.end();
      await once(output, 'finish');
      await connection.drain(1_000);
      console.error(`${events} events written.`);
    });
}

function poolName(text: string): string {
  if (!POOL_PATTERN.test(text)) throw new InvalidArgumentError('Expected 1 to 64 letters, digits, _ or -.');
  return text;
}
