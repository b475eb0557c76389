import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import swc from 'unplugin-swc';
import { defineConfig } from 'vitest/config';

const lib = (name: string) => fileURLToPath(new URL(`./libs/${name}/src/index.ts`, import.meta.url));

export default defineConfig({
  plugins: [swc.vite({ module: { type: 'es6' } })],
  oxc: false,
  resolve: {
    alias: Object.fromEntries(
      ['contracts', 'messaging', 'state', 'policies', 'engines', 'platform', 'testing'].map((name) => [
        `@broomwagon/${name}`,
        lib(name),
      ]),
    ),
  },
  test: {
    include: ['{apps,libs,bench}/**/*.spec.ts', 'test/**/*.spec.ts'],
    // A busy machine of two cores stands still for seconds at times; only what never comes may fail a test.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    pool: 'forks',
    // Most tests wait for other processes: two files at a time fit on two cores.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    setupFiles: ['reflect-metadata'],
    globalSetup: ['./libs/testing/src/vitest-global-setup.ts'],
  },
});
