import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import swc from 'unplugin-swc';
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';
// @ts-expect-error: a script without types
import { specTiers } from './scripts/tiers.mjs';

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

/**
 * Longest first, by duration or size. Files with modules of their own come before those that share them, because a process
 * with shared modules ends when its next file has its own. Specs of libraries are short and come last, so that no worker
 * runs a long file alone at the end.
 */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const placeOf = ({ moduleId, project }: TestSpecification): number => {
      if (project.name === 'own') return 0;
      const path = relative(this.ctx.config.root, moduleId);
      // These only call a suite: they are small files, and take the longest time.
      return path.startsWith('test/set-back/') ? 1 : /^(apps|test)\//.test(path) ? 2 : 3;
    };
    return sorted.toSorted((one, other) => placeOf(one) - placeOf(other));
  }
}

/** Files that share their modules: to load them again for each file takes longer than most of their tests. */
const SHARED = ['{apps,libs,lab,tools,test}/**/*.spec.ts'];

/** Files whose tests, or fixtures, keep state in a module (a connection, a logger, a failpoint) or measure the process. */
const OWN_MODULES = [
  'libs/state/src/aborts/abort-lifecycle.spec.ts',
  'libs/state/src/longtail/giving-up.spec.ts',
  'libs/state/src/payload/failing-disk.spec.ts',
  'libs/state/src/rounds/round-{lifecycle,model}.spec.ts',
  'libs/state/src/routing/{restrictions,routing}-model.spec.ts',
  'libs/state/src/snapshots/snapshot-lifecycle.spec.ts',
  'libs/platform/src/service/bootstrap.spec.ts',
  'apps/gateway/src/http/hostile.spec.ts',
  'apps/load-balancer/src/high-availability.spec.ts',
  'apps/trainer-coordinator/src/payload/failing-folder.spec.ts',
  'test/{abort,fuzz,moves,weights}.spec.ts',
];

/** `npm run test:browser`; its short form is test/console.spec.ts. */
const BROWSER = 'test/browser/**';

/** Tests start the programs of dist/: no test run uses an older build than its sources. */
export const BUILD = './scripts/vitest-build.mjs';

const SETUP = './libs/testing/src/vitest-global-setup.ts';

/** `npm run test:unit`, `test:services` and `test:system` run one tier (scripts/tiers.mjs); `npm test` runs all. */
const tier = process.env['TEST_TIER'];
const otherTiers =
  tier === undefined
    ? []
    : [...(specTiers() as Map<string, string>)].filter(([, specTier]) => specTier !== tier).map(([spec]) => spec);

/** Kept transforms are for one tsconfig.json, which swc reads too. */
const transformsOfTsconfig: Plugin = {
  name: 'transforms-of-tsconfig',
  configureVitest({ experimental_defineCacheKeyGenerator: addToKey }) {
    const text = readFileSync(fileURLToPath(new URL('./tsconfig.json', import.meta.url)), 'utf8');
    addToKey(() => text);
  },
};

/** What the suites with a command of their own share with `npm test`. */
export const base = {
  // Without .swcrc, whose paths would go before the aliases below.
  plugins: [swc.vite({ swcrc: false, module: { type: 'es6' } }), transformsOfTsconfig],
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
    // A busy machine of two cores pauses for seconds at times; a test may fail only for what never happens.
    testTimeout: 120_000 * Number(process.env['TEST_RUNS_FACTOR'] ?? 1),
    hookTimeout: 120_000,
    expect: { poll: { timeout: 30_000 } },
    pool: 'forks',
    // A test file keeps about half a core busy; the rest of the time it waits for other processes, unless it has none.
    maxWorkers: Math.max(tier === 'unit' ? 1 : 4, availableParallelism()),
    sequence: { sequencer: LongestFirst },
    setupFiles: ['./libs/testing/src/vitest-setup.ts'],
    globalSetup: tier === 'unit' ? [SETUP] : [BUILD, SETUP],
    // A run transforms only files that have changed since the run before.
    experimental: { fsModuleCache: true },
  },
};

export default defineConfig({
  ...base,
  test: {
    ...base.test,
    projects: [
      {
        extends: true,
        test: { name: 'shared', include: SHARED, exclude: [...OWN_MODULES, BROWSER, ...otherTiers], isolate: false },
      },
      { extends: true, test: { name: 'own', include: OWN_MODULES, exclude: otherTiers } },
    ],
  },
});
