// The dependency rule of the map (docs/architecture.md): arrows point down only.
const lib = (name) => `^libs/${name}/`;
const only = (name, from, to, comment) => ({ name, severity: 'error', comment, from, to });

module.exports = {
  forbidden: [
    only('no-circular', {}, { circular: true }, 'data flows one way'),
    only(
      'apps-are-strangers',
      { path: '^apps/([^/]+)/' },
      { path: '^apps/', pathNot: '^apps/$1/' },
      'apps talk over NATS',
    ),
    only('libs-below-apps', { path: '^libs/' }, { path: '^(apps|tools|test)/' }, 'arrows point down'),
    only(
      'tools-on-contracts',
      { path: '^tools/', pathNot: '\\.spec\\.ts$' },
      { path: '^(apps|libs|lab|test)/', pathNot: '^libs/contracts/' },
      'generated files come from contracts alone',
    ),
    only(
      'product-without-proof',
      { path: '^(apps|libs)/', pathNot: '\\.(spec|fixture)\\.ts$' },
      { path: '^(lab|tools|test)/' },
      'what is deployed runs without lab; npm start and compose start its processes, by file name',
    ),
    only(
      'console-in-a-browser',
      { path: '^apps/console/' },
      { path: '^libs/', pathNot: lib('admin-client') },
      'the console knows the system by its REST API only',
    ),
    only(
      'contracts-need-nothing',
      { path: lib('contracts') },
      { path: '^libs/', pathNot: lib('contracts') },
      'no I/O in contracts',
    ),
    only(
      'admin-client-in-browsers',
      { path: lib('admin-client'), pathNot: '\\.spec\\.ts$' },
      { path: ['^libs/', 'node_modules'], pathNot: [lib('admin-client'), 'node_modules/openapi-'] },
      'the console bundles it: no other library of the project',
    ),
    only(
      'admin-client-without-node',
      { path: lib('admin-client'), pathNot: '\\.spec\\.ts$' },
      { dependencyTypes: ['core'] },
      'it also runs in browsers',
    ),
    only(
      'platform-on-messaging',
      { path: lib('platform'), pathNot: '\\.(spec|fixture)\\.ts$' },
      { path: '^libs/', pathNot: ['^libs/(contracts|messaging)/', lib('platform')] },
      'the one bootstrap brings the transport up: platform -> messaging, contracts',
    ),
    only(
      'libs-on-contracts',
      { path: '^libs/(messaging|state|policies)/', pathNot: '\\.(spec|fixture)\\.ts$' },
      { path: '^libs/', pathNot: ['^libs/contracts/', '^libs/$1/'] },
      'messaging, state, policies -> contracts',
    ),
    only(
      'engines-on-policies',
      { path: lib('engines'), pathNot: '\\.(spec|fixture)\\.ts$' },
      { path: '^libs/', pathNot: ['^libs/(contracts|policies)/', lib('engines')] },
      'engines -> policies, contracts',
    ),
    only(
      'generation-on-engines',
      { path: lib('generation'), pathNot: '\\.(spec|fixture)\\.ts$' },
      { path: '^libs/', pathNot: ['^libs/(contracts|messaging|engines|platform)/', lib('generation')] },
      'what holds leases stores nothing: generation -> engines, platform, messaging, contracts',
    ),
    only(
      'only-state-talks-to-redis',
      { path: '^(apps|libs)/', pathNot: ['^libs/(state|testing)/', '\\.(spec|fixture)\\.ts$'] },
      { path: 'node_modules/ioredis' },
      'one door to Redis',
    ),
    only(
      'only-messaging-talks-to-nats',
      { path: '^(apps|libs)/', pathNot: ['^libs/(messaging|testing)/', '\\.(spec|fixture)\\.ts$'] },
      { path: 'node_modules/nats/' },
      'one door to NATS',
    ),
    only(
      'only-engines-talk-to-engines',
      {
        path: '^(apps|libs)/',
        // The API server of Kubernetes is no engine.
        pathNot: ['^libs/(engines|testing)/', '^apps/load-balancer/src/servers/kubernetes/', '\\.(spec|fixture)\\.ts$'],
      },
      { path: 'node_modules/undici' },
      'one door to engines',
    ),
    only(
      'policies-are-pure',
      { path: lib('policies'), pathNot: '\\.(spec|fixture)\\.ts$' },
      { dependencyTypes: ['core'], pathNot: '^(node:)?crypto$' },
      'no clock, random or I/O in a policy',
    ),
    only(
      'no-testing-in-production',
      { path: '^(apps|libs)/', pathNot: ['^libs/testing/', '\\.(spec|fixture)\\.ts$'] },
      { path: lib('testing') },
      'libs/testing is for tests and lab',
    ),
    only(
      'reached-from-an-entry',
      { path: ['^apps/[^/]+/src/(main|[\\w-]+\\.cli)\\.tsx?$', '^lab/demo/src/'] },
      {
        path: '^(apps/|libs/(?!testing/))[^/]+/src/',
        pathNot: ['/main\\.tsx?$', '\\.cli\\.ts$', '\\.(spec|fixture|d)\\.tsx?$'],
        reachable: false,
      },
      'no program uses the file: a provider that no module lists does not run',
    ),
  ],
  options: {
    tsConfig: { fileName: 'tsconfig.json' },
    tsPreCompilationDeps: true,
    doNotFollow: { path: 'node_modules' },
  },
};
