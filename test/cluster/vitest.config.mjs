import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { base, BUILD } from '../../vitest.config.mts';

/** Tests with a Redis Cluster and with Sentinels, and the specs of the state with a Cluster in the place of Redis. */
export default defineConfig({
  ...base,
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: {
    ...base.test,
    include: ['test/cluster/*.check.ts', 'libs/state/src/*/**/*.spec.ts', 'libs/state/src/state.module.spec.ts'],
    globalSetup: [BUILD, './test/cluster/cluster.setup.ts'],
    setupFiles: [...base.test.setupFiles, './test/cluster/all-keys.setup.ts'],
  },
});
