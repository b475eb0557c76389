import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { base, BUILD } from '../../vitest.config.mts';

/** Tests of a real engine: apart from all others, since they need one. */
export default defineConfig({
  ...base,
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: {
    ...base.test,
    include: ['test/engines/*.check.ts'],
    setupFiles: ['reflect-metadata'],
    globalSetup: [BUILD, './test/engines/probe.setup.ts'],
    testTimeout: 300_000,
  },
});
