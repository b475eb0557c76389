// Writes docs/settings.md with every setting of every service, from the output of `--print-config`, and docs/cli.md
// with the help of every command, and the table of behaviours in docs/engines.md. With `--check` it fails when a
// committed copy is stale.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { format } from 'prettier';
import { root } from './prepare.mjs';

const services = ['load-balancer', 'trainer-coordinator', 'worker', 'gateway', 'admin-api'];

function settingsOf(service) {
  const program = join(root, 'dist', 'apps', service, 'src', 'main.js');
  // The program runs without an environment, so that it prints the defaults.
  const { stdout, status, stderr } = spawnSync(process.execPath, [program, '--print-config'], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH },
  });
  if (status !== 0) throw new Error(`${service} --print-config: ${stderr}`);
  return (
    stdout
      .trim()
      .split('\n')
      .map((line) => line.split(/\s{2,}/))
      .map((cells) => ({ name: cells[0], value: cells.length === 4 ? cells[1] : '', description: cells.at(-1) }))
      // The default value contains host and process, so it is left out.
      .map((setting) => (setting.name === 'WORKER_ID' ? { ...setting, value: '' } : setting))
  );
}

function table(settings) {
  const row = ({ name, value, description }) => `| \`${name}\` | ${value && `\`${value}\``} | ${description} |`;
  return ['| variable | default | meaning |', '|---|---|---|', ...settings.map(row)].join('\n');
}

const all = new Map(services.map((service) => [service, settingsOf(service)]));
const shared = all
  .get(services[0])
  .filter(({ name }) => services.every((s) => all.get(s).some((x) => x.name === name)));
const sharedDefaults = new Map(shared.map(({ name, value }) => [name, value]));
/** Whether a setting is listed for its service: a shared setting only if its default differs. */
const isOwn = ({ name, value }) => sharedDefaults.get(name) !== value;
const settingsPage = `# Settings

Each service reads its settings from the environment, and from the JSON file that \`CONFIG_FILE\` names; the environment takes precedence. A service with invalid settings reports all of them and does not start. \`--print-config\` prints the settings without secrets. \`npm run schema\` generates this page.

## All services
${table(shared)}
${services.map((s) => `\n## ${s}\n${table(all.get(s).filter(isOwn))}\n`).join('')}`;

let printed = '';
/** The help of a command, below its full name. */
function section(command, name) {
  printed = '';
  command.configureHelp({ ...command.configureHelp(), showGlobalOptions: false }).outputHelp();
  return `\n## ${name}\n\n\`\`\`text\n${printed.trimEnd()}\n\`\`\`\n`;
}

const { createProgram } = createRequire(import.meta.url)(join(root, 'dist', 'apps', 'cli', 'src', 'program.js'));
const program = createProgram({ ...process, stdout: { write: (text) => (printed += text) } });
const sections = program.commands.flatMap((command) =>
  command.commands.length === 0
    ? section(command, command.name())
    : command.commands.map((inner) => section(inner, `${command.name()} ${inner.name()}`)),
);
const cliPage = `# Command line

\`npx broomwagon\` calls the [REST API](admin-api.md). It works after \`npm ci && npm run build\`. \`npm run schema\` generates this page.
${section(program, 'broomwagon')}${sections.join('')}`;

/** docs/engines.md with the table of all behaviours that the engine simulator can show. */
async function enginesPage() {
  const load = (file) => createRequire(import.meta.url)(join(root, 'dist/lab/engine-simulator/src/zoo', file));
  const entries = [...load('zoo.js').ZOO, ...load('recorded/recording.js').recordedEntries()];
  const cells = ({ name, dialects, behaviour, source, release, broomwagon, test }) =>
    [`\`${name}\``, dialects.join(', '), behaviour, release, source, broomwagon, `\`${test}\``].join(' | ');
  const header = '| name | dialects | what the engine does | release | source | what Broomwagon does | test |';
  const rows = [header, '|---|---|---|---|---|---|---|', ...entries.map((entry) => `| ${cells(entry)} |`)];
  const page = readFileSync(join(root, 'docs/engines.md'), 'utf8');
  const table = /(<!-- behaviours -->\n)[^]*(<!-- end of behaviours -->)/;
  if (!table.test(page)) throw new Error('docs/engines.md has no place for the table of behaviours');
  const whole = page.replace(table, (_, start, end) => `${start}\n${rows.join('\n')}\n\n${end}`);
  return format(whole, { parser: 'markdown', printWidth: 120 });
}

for (const [name, page] of [
  ['engines.md', await enginesPage()],
  ['settings.md', settingsPage],
  ['cli.md', cliPage],
]) {
  const file = join(root, 'docs', name);
  if (!process.argv.includes('--check')) {
    writeFileSync(file, page);
    console.log(`wrote ${file}`);
  } else if (readFileSync(file, 'utf8') !== page) {
    console.error(`docs/${name} is stale: run \`npm run schema\` and commit it.`);
    process.exitCode = 1;
  }
}
