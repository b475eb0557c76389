// `npm run screenshots`: pictures of all pages of the console in docs/images, light and dark. Takes about five minutes.
import { build, install, requireNode } from './prepare.mjs';
import { runTests } from './vitest.mjs';

requireNode();
install();
build();
process.exit(runTests(['--config', 'test/browser/screenshots.config.mjs']));
