// `npm run study:tiny-grpo [-- --help]`: trains a tiny model with each tail policy and five seeds, and plots the results
// (docs/does-cutting-hurt-learning.md). The packages are installed into the cache folder, once.
import { spawn } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { build, install, requireNode, root } from './prepare.mjs';
import { pythonOfTinyGrpo } from './python.mjs';

requireNode();
install();
build();
const python = pythonOfTinyGrpo();
if (python === undefined) process.exit(1);
const paths = [join(root, 'examples', 'tiny-grpo'), join(root, 'clients', 'python', 'src')];
const study = spawn(python, ['-m', 'tiny_grpo.study', ...process.argv.slice(2)], {
  stdio: 'inherit',
  env: { ...process.env, PYTHONPATH: paths.join(delimiter) },
});
// The terminal sends Ctrl-C to the whole group; a SIGTERM reaches only this process and is passed on.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => study.kill('SIGTERM'));
study.on('exit', (code) => process.exit(code ?? 1));
