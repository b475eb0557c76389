import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { base } from '../../vitest.config.mts';

/** The Helm chart and the discovery of engines against a real API server of Kubernetes. */
export default defineConfig({
  ...base,
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: {
    ...base.test,
    include: ['test/kubernetes/*.check.ts'],
    globalSetup: [...base.test.globalSetup, './test/kubernetes/api-server.setup.ts'],
  },
});
