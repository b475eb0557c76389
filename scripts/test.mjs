// `npm test`: set-up, build, linters, types, generated files, then every test. Ends with `N passed, N failed, N skipped`.
import { join } from 'node:path';
import { build, install, requireNode, root, runTogether } from './prepare.mjs';
import { findPythons, pythonWith, skip } from './python.mjs';
import { runTests } from './vitest.mjs';

requireNode();
install();
build();
await runTogether(['lint:format', 'lint:code', 'types', 'schema:check']);
const [python] = Object.values(findPythons(10));
const requirements = join(root, 'test', 'python', 'requirements-short.txt');
const executable = python === undefined ? skip('there is no Python 3.10') : pythonWith('python', python, requirements);
const environment = executable === undefined ? {} : { CLIENT_PYTHON: executable };
process.exit(runTests(process.argv.slice(2), { environment }));
