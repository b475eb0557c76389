import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command } from 'commander';
import { findEntries, zooNames } from '../zoo';
import { recordStream } from './record';
import { recordingsFolder, type Recording } from './recording';

const MAX_TOKENS = 32;

/** `npm run engines -- record URL --name NAME ...`: writes one recording into the folder of recordings. */
export async function recordCommand(argv: readonly string[]): Promise<void> {
  const command = new Command('record')
    .description('Records a stream of a real engine as an entry of the zoo.')
    .argument('<url>', 'base URL of the engine')
    .requiredOption('--name <name>', 'name of the entry: lower-case words with hyphens')
    .requiredOption('--behaviour <text>', 'what the engine does, beginning with a verb')
    .requiredOption('--release <text>', 'name and version of the engine')
    .option('--source <text>', 'file of the engine, or address of a report', 'recorded')
    .option('--prompt <text>', 'prompt', 'Natalia sold clips to 48 of her friends.')
    .option('--request <file>', 'JSON file with prompt, sampling and maxTokens, in place of --prompt')
    .option('--api-key <key>', 'sent as a bearer token; default: ENGINE_API_KEY')
    .showHelpAfterError();
  command.parse([...argv], { from: 'user' });
  const [url] = command.args as [string];
  const { name, behaviour, release, source, prompt, request: file, ...given } = command.opts<Record<string, string>>();
  if (!/^[a-z0-9-]+$/.test(name!)) command.error('error: --name has lower-case words with hyphens');
  if (zooNames().includes(name!)) command.error(`error: ${name} is the name of another entry`);
  const request = file
    ? (JSON.parse(readFileSync(file, 'utf8')) as Recording['request'])
    : { prompt: { text: prompt! }, sampling: { temperature: 0, logprobs: true }, maxTokens: MAX_TOKENS };
  const row = { name: name!, behaviour: behaviour!, release: release!, source: source! };
  const recording = await recordStream(url, { ...row, request, apiKey: given.apiKey ?? process.env.ENGINE_API_KEY });
  const path = join(recordingsFolder(), `${name}.json`);
  mkdirSync(recordingsFolder(), { recursive: true });
  writeFileSync(path, `${JSON.stringify(recording, undefined, 2)}\n`);
  findEntries([name!]);
  process.stdout.write(`${recording.dialect}, ${recording.outcome}: wrote ${path}\n`);
}
