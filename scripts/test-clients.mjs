// `npm run test:clients`: the published clients of each dialect against the gateway. `npm test` runs the part that
// needs Node only; here the clients for Python are installed into the cache folder, once: the clients of OpenAI and
// Anthropic, and packages of trainers without their requirements (torch, ray and others, some gigabytes). Without
// Python 3.11 or the package index their tests are skipped by name. `npm run test:clients -- peers` runs the trainers'
// own tests in checkouts that are named (test/clients/peers.check.ts); it fetches nothing. Schemathesis sends requests
// made of docs/protocol/openapi.json to admin-api, for SCHEMATHESIS_SECONDS (600), and a client for Go is generated from
// it, compiled and called; without Go or its modules that is skipped by name.
import { spawnSync } from 'node:child_process';
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
const schemathesis = python && pythonWith('schemathesis', python, join(folder, 'schemathesis-requirements.txt'));
const environment = {
  ...(executable === undefined ? {} : { CLIENTS_PYTHON: executable }),
  ...(schemathesis === undefined ? {} : { SCHEMATHESIS_PYTHON: schemathesis }),
};
const go = findGo();
if (go !== undefined) environment.CLIENTS_GO = go;
process.exit(runTests(['--config', 'test/clients/vitest.config.mjs', ...process.argv.slice(2)], { environment }));

/** The Go compiler with the modules of the generated client. Undefined, with a printed reason, if there is none. */
function findGo() {
  const places = [process.env.GO, 'go', '/usr/local/go/bin/go'].filter(Boolean);
  const found = places.find((place) => spawnSync(place, ['version']).status === 0);
  const modules = found && spawnSync(found, ['mod', 'download'], { cwd: join(folder, 'go'), stdio: 'inherit' });
  if (modules?.status === 0) return found;
  const reason = found === undefined ? 'there is no Go' : 'Go cannot download its modules';
  console.log(`Skipped: the generated client for Go: ${reason}`);
  return undefined;
}
