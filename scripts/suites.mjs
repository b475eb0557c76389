// The test suites, in the order in which `npm run test:all` runs them, and the folders whose change concerns each
// suite.

/** Files that every suite uses, so that their change concerns all suites. */
const EVERYWHERE = ['package-lock.json', 'scripts/prepare.mjs', 'scripts/vitest.mjs', 'vitest.config.mts'];

/**
 * `script` of package.json; `arguments` after it; `minutes` on two idle cores; `paths`: prefixes of the files that the
 * suite tests and that `npm test` alone does not test enough.
 */
export const SUITES = [
  { name: 'test', script: 'test', minutes: 15, paths: [''] },
  {
    name: 'faults',
    script: 'test:faults',
    minutes: 35,
    paths: ['apps/', 'libs/', 'lab/engine-simulator/', 'test/set-back/', 'test/failpoints', 'scripts/test-faults.mjs'],
  },
  {
    name: 'cluster',
    script: 'test:cluster',
    minutes: 12,
    paths: ['libs/state/', 'libs/messaging/', 'test/cluster/', 'scripts/test-cluster.mjs'],
  },
  { name: 'valkey', script: 'test:valkey', minutes: 5, paths: ['libs/state/', 'scripts/test-valkey.mjs'] },
  {
    name: 'nats',
    script: 'test:nats',
    minutes: 5,
    paths: ['libs/messaging/', 'deploy/nats/', 'docker-compose.yml', 'scripts/test-nats.mjs'],
  },
  {
    name: 'clients',
    script: 'test:clients',
    minutes: 18,
    paths: [
      'apps/gateway/',
      'apps/admin-api/',
      'docs/protocol/openapi.json',
      'libs/generation/',
      'libs/engines/',
      'test/clients/',
      'scripts/test-clients.mjs',
    ],
  },
  {
    name: 'python',
    script: 'test:python',
    arguments: ['verl'],
    minutes: 30,
    paths: ['clients/python/', 'examples/', 'libs/contracts/', 'test/python/', 'scripts/test-python.mjs'],
  },
  {
    name: 'kubernetes',
    script: 'test:kubernetes',
    minutes: 10,
    paths: ['deploy/', 'docker-compose.yml', 'libs/platform/', 'apps/load-balancer/src/servers/', 'test/kubernetes/'],
  },
  {
    name: 'browser',
    script: 'test:browser',
    minutes: 4,
    paths: ['apps/console/', 'apps/admin-api/', 'test/browser/', 'scripts/test-browser.mjs'],
  },
  {
    name: 'engines',
    script: 'test:engines',
    minutes: 10,
    paths: ['libs/engines/', 'lab/engine-simulator/src/zoo/', 'test/engines/', 'scripts/test-engines.mjs'],
  },
];

/** The suites that a change of these files concerns. */
export function concernedSuites(files) {
  const isConcerned = ({ paths }) =>
    files.some((file) => [...EVERYWHERE, ...paths].some((prefix) => file.startsWith(prefix)));
  return SUITES.filter(isConcerned);
}
