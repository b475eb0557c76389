// `npm run test:clients`: the published clients of each dialect against the gateway. `npm test` runs the part that
// needs Node only; here the clients for Python are installed into the cache folder, once: the clients of OpenAI and
// Anthropic, and packages of trainers without their requirements (torch, ray and others, some gigabytes). Without
// Python 3.11 or the package index their tests are skipped by name. `npm run test:clients -- peers` runs the trainers'
// own tests in checkouts that are named (test/clients/peers.check.ts); it fetches nothing.
import { join } from 'node:path';
import { build, install, requireNode, root } from './prepare.mjs';
import { findPythons, pythonWith, skip } from './python.mjs';
import { runTests } from './vitest.mjs';

requireNode();
install();
build();
const [python] = Object.values(findPythons(11));
const folder = join(root, 'test', 'clients');
const requirements = [join(folder, 'requirements.txt'), join(folder, 'trainers', 'requirements.txt')];
const executable =
  python === undefined ? skip('there is no Python 3.11') : pythonWith('clients', python, ...requirements);
const environment = executable === undefined ? {} : { CLIENTS_PYTHON: executable };
process.exit(runTests(['--config', 'test/clients/vitest.config.mjs', ...process.argv.slice(2)], { environment }));
