import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import swc from 'unplugin-swc';
import { defineConfig } from 'vitest/config';

const barrel = (folder: string) => fileURLToPath(new URL(`./${folder}/src/index.ts`, import.meta.url));
const libraries = [
  'admin-client',
  'contracts',
  'messaging',
  'state',
  'policies',
  'engines',
  'generation',
  'platform',
  'testing',
];

export default defineConfig({
  // Without .swcrc, whose paths would go before the aliases below.
  plugins: [swc.vite({ swcrc: false, module: { type: 'es6' } })],
  oxc: false,
  resolve: {
    alias: {
      ...Object.fromEntries(libraries.map((name) => [`@broomwagon/${name}`, barrel(`libs/${name}`)])),
      '@broomwagon/models': barrel('lab/models'),
      '@broomwagon/messaging': fileURLToPath(
        new URL('./libs/testing/src/protocol/checked-messaging.ts', import.meta.url),
      ),
    },
  },
  test: {
    include: ['{apps,libs,lab}/**/*.spec.ts', 'test/**/*.spec.ts'],
    // `npm run test:browser`; its short form is test/console.spec.ts.
    exclude: ['test/browser/**'],
    // A busy machine of two cores stands still for seconds at times; only what never comes may fail a test.
    testTimeout: 120_000 * Number(process.env['TEST_RUNS_FACTOR'] ?? 1),
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    pool: 'forks',
    // Most tests wait for other processes: two files at a time fit on two cores.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    setupFiles: ['./libs/testing/src/vitest-setup.ts'],
    globalSetup: ['./libs/testing/src/vitest-global-setup.ts'],
  },
});
