// Copies the files that the image needs beside node_modules from a build to FOLDER: the programs, without tests and
// files that only tests use. With `--simulator`, copies the simulated engines instead.
import { cpSync } from 'node:fs';
import { join } from 'node:path';

const SERVICES = [
  'dist/apps',
  'dist/commit',
  'dist/console',
  'dist/libs',
  'docs/protocol/examples/trainer.mjs',
  'docs/protocol/openapi.json',
  'package.json',
];
const SIMULATOR = ['dist/lab/engine-simulator', 'dist/lab/models'];
/** Specs, fixtures, and source maps, which Node does not read by default. */
const LEFT_OUT = /\.(spec\.js|fixture\.js|map|md)$|^dist\/(libs\/testing|lab\/\S+\/test-engine\.js)$/;

const [folder, option] = process.argv.slice(2);
for (const path of option === '--simulator' ? SIMULATOR : SERVICES) {
  cpSync(path, join(folder, path), { recursive: true, filter: (source) => !LEFT_OUT.test(source) });
}
