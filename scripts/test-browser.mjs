// `npm run test:browser`: the console in a real Chromium, against the running system. Takes about three minutes;
// `-- test/browser/actions` runs a part. CHROMIUM is the path of the browser, by default /usr/bin/chromium.
import { createRequire } from 'node:module';
import { build, cannotRun, install, requireNode } from './prepare.mjs';
import { runTests } from './vitest.mjs';

requireNode();
install();
build();
const { NO_BROWSER } = createRequire(import.meta.url)('../dist/libs/testing/src/launch-chromium.js');
if (NO_BROWSER !== undefined) cannotRun(NO_BROWSER);
process.exit(runTests(['--config', 'test/browser/vitest.config.mjs', ...process.argv.slice(2)]));
