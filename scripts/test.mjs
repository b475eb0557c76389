// `npm test`: set-up, build, linters, types, generated files, then every test. Ends with `N passed, N failed, N skipped`.
import { build, install, requireNode, runTogether } from './prepare.mjs';
import { pythonOfShortTests } from './python.mjs';
import { runTests } from './vitest.mjs';

requireNode();
install();
build();
await runTogether(['lint:format', 'lint:code', 'types', 'schema:check']);
const executable = pythonOfShortTests();
const environment = executable === undefined ? {} : { CLIENT_PYTHON: executable };
process.exit(runTests(process.argv.slice(2), { environment }));
