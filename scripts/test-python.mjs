// `npm run test:python`: clients/python with each Python of this machine from 3.10 on: its tests against the services,
// mypy, ruff, and a wheel that is installed into a new environment; and examples/tiny-grpo with its short study.
// `npm test` runs the short tests. The packages are installed into the cache folder, once. Without Python or the
// package index the tests are skipped by name. `npm run test:python -- verl` installs verl too, with PyTorch and Ray (6
// GB); later runs then include its tests.
import { join } from 'node:path';
import { build, install, requireNode, root } from './prepare.mjs';
import { findPythons, hasPython, pythonOfTinyGrpo, pythonWith, skip } from './python.mjs';
import { runTests } from './vitest.mjs';

requireNode();
install();
build();
const requirements = join(root, 'test', 'python', 'requirements.txt');
const found = Object.entries(findPythons(10)).sort(([a], [b]) => Number(a.slice(2)) - Number(b.slice(2)));
if (found.length === 0) skip('there is no Python 3.10');
// The tests run with the oldest and the newest Python.
const used = [...new Set([found[0], found.at(-1)])].filter(Boolean);
const pythons = used.flatMap(([version, python]) => pythonWith(`python-${version}`, python, requirements) ?? []);
const environment = {
  CLIENT_PYTHONS: pythons.join(' '),
  VERL_PYTHON: pythonWithVerl() ?? '',
  TINY_GRPO_PYTHON: pythonOfTinyGrpo() ?? '',
};
process.exit(runTests(['--config', 'test/python/vitest.config.mjs', ...process.argv.slice(2)], { environment }));

/** Interpreter with verl, which needs a Python for which all its packages are built. */
function pythonWithVerl() {
  const python = findPythons(10)['3.11'] ?? findPythons(10)['3.12'];
  if (python === undefined) return skip('verl needs Python 3.11 or 3.12');
  const files = ['requirements-verl.txt', 'verl-alone.txt'].map((name) => join(root, 'test', 'python', name));
  if (!process.argv.includes('verl') && !hasPython('python-verl', python, ...files)) {
    return skip('verl is not installed; `npm run test:python -- verl` installs it (6 GB)');
  }
  const installed = pythonWith('python-verl', python, ...files);
  if (installed) console.log(`Python with verl: ${installed}`);
  return installed;
}
