// `npm run study:tiny-grpo [-- --help]`: trains a tiny model with each tail policy and five seeds, and plots the results
// (docs/does-cutting-hurt-learning.md). With `--simulated` it makes the runs that need no services. With
// TINY_GRPO_ARRAYS=cupy the model is on a GPU. The packages are installed into the cache folder, once.
import { spawn } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { build, install, requireNode, root } from './prepare.mjs';
import { pythonOfTinyGrpo } from './python.mjs';

requireNode();
install();
build();
const args = process.argv.slice(2).filter((arg) => arg !== '--simulated');
const program = args.length < process.argv.length - 2 ? 'tiny_grpo.sweep' : 'tiny_grpo.study';
const python = pythonOfTinyGrpo(process.env.TINY_GRPO_ARRAYS === 'cupy');
if (python === undefined) process.exit(1);
const paths = [join(root, 'examples', 'tiny-grpo'), join(root, 'clients', 'python', 'src')];
const study = spawn(python, ['-m', program, ...args], {
  stdio: 'inherit',
  env: { OPENBLAS_NUM_THREADS: '1', ...process.env, PYTHONPATH: paths.join(delimiter) },
});
// The terminal sends Ctrl-C to the whole group; a SIGTERM reaches only this process and is passed on.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => study.kill('SIGTERM'));
study.on('exit', (code) => process.exit(code ?? 1));
