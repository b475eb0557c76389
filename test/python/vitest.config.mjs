import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { base } from '../../vitest.config.mts';

/** `npm run test:python`: all tests of clients/python. */
export default defineConfig({
  ...base,
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: { ...base.test, include: ['test/python/*.check.ts'], testTimeout: 600_000 },
});
