// `npm test`: set-up, build, linters, types, generated files, then every test. Ends with `N passed, N failed, N skipped`.
import { build, install, requireNode, run } from './prepare.mjs';
import { runTests } from './vitest.mjs';

requireNode();
install();
build();
for (const script of ['lint', 'types', 'schema:check']) run('npm', ['run', '--silent', script]);
process.exit(runTests(process.argv.slice(2)));
