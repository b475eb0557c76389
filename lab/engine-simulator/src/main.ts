import 'reflect-metadata';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import Table from 'cli-table3';
import { readOptions } from './options';
import { startSimulator, type RunningSimulator } from './simulator';
import { recordCommand } from './zoo/recorded/record.cli';

/** Runs `record`; or starts the engines, prints their addresses, and runs until SIGINT or SIGTERM. */
async function main(): Promise<void> {
  if (process.argv[2] === 'record') return recordCommand(process.argv.slice(3));
  const options = readOptions(process.argv);
  const readyFile = process.env.READY_FILE;
  const simulator = await startSimulator({ ...options, ports: portsOfEarlierRun(readyFile) });
  const table = new Table({ head: ['server', 'address'] });
  for (const { serverId, url } of simulator.servers) table.push([serverId, url]);
  const { dialect, lengths, speed } = options;
  process.stdout.write(`${table.toString()}\n${dialect}, lengths ${lengths.name}, ${speed} simulated s per wall s\n`);

  if (readyFile) {
    // Renamed into place, so that no reader gets an incomplete file.
    writeFileSync(`${readyFile}.new`, JSON.stringify({ pid: process.pid, servers: simulator.servers }));
    renameSync(`${readyFile}.new`, readyFile);
  }
  const stop = (): void => {
    void simulator.close().then(() => process.exit(0));
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
}

/** Ports of an earlier run: restarted engines keep their addresses, as servers do. */
function portsOfEarlierRun(readyFile: string | undefined): number[] | undefined {
  if (!readyFile || !existsSync(readyFile)) return undefined;
  const { servers } = JSON.parse(readFileSync(readyFile, 'utf8')) as Pick<RunningSimulator, 'servers'>;
  return servers.map(({ url }) => Number(new URL(url).port));
}

main().catch((error: unknown) => {
  process.stderr.write(`engine-simulator: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
