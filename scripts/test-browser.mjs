// `npm run test:browser`: the console in a real Chromium, against the running system. Takes about three minutes;
// `-- test/browser/actions` runs a part. CHROMIUM is the path of the browser, by default /usr/bin/chromium.
import { build, install, requireNode } from './prepare.mjs';
import { runTests } from './vitest.mjs';

requireNode();
install();
build();
process.exit(runTests(['--config', 'test/browser/vitest.config.mjs', ...process.argv.slice(2)]));
