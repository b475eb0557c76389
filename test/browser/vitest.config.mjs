import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { base } from '../../vitest.config.mts';

/** The console in Chromium, against the running system. */
export default defineConfig({
  ...base,
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: { ...base.test, include: ['test/browser/*.spec.ts', 'test/console.spec.ts'], exclude: [] },
});
