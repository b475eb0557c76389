import 'reflect-metadata';
import { Command } from 'commander';
import { isBroomwagonError } from '@broomwagon/contracts';
import { provideServices } from './services';

/**
 * `npm run services`: NATS and Redis until Ctrl-C. Standard output gets lines that a shell can `eval`; messages for
 * people go to standard error.
 */
async function main(): Promise<void> {
  new Command('services')
    .description(
      'NATS and Redis until Ctrl-C: those of NATS_URL and REDIS_URL, on PATH, private copies, or by Docker. ' +
        'Prints the lines that name them to a shell.',
    )
    .parse();
  const say = (line: string) => process.stderr.write(`${line}\n`);
  const services = await provideServices({ say });
  let stopping = false;
  const stop = async () => {
    if (stopping) return;
    stopping = true;
    await services.stop();
    clearInterval(staying);
  };
  const staying = setInterval(() => undefined, 60_000);
  process.on('SIGINT', () => void stop());
  process.on('SIGTERM', () => void stop());

  process.stdout.write(`export NATS_URL='${services.nats.url}'\nexport REDIS_URL='${services.redis.url}'\n`);
  say(`# ${services.nats.description} [${services.nats.source}]`);
  say(`# ${services.redis.description} [${services.redis.source}]`);
  say('# Ctrl-C ends what was started here');
}

main().catch((error: unknown) => {
  const text = isBroomwagonError(error) ? error.message : error instanceof Error ? error.stack : String(error);
  process.stderr.write(`${text}\n`);
  process.exitCode = 1;
});
