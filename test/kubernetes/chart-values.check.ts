import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, inject, it } from 'vitest';
import { CHART, helm, objectsIn, run } from './chart';

/** Versions of the schemas of tools.mjs. */
const KUBERNETES_VERSIONS = ['1.27.0', '1.34.0', '1.37.0'];
/** Kinds of CRDs; chart.check.ts creates these objects in an API server. */
const OTHER_KINDS = 'ScaledObject,ServiceMonitor,PrometheusRule,HTTPRoute';
const VALUES = 'test/kubernetes/values';
const RELEASE_NAME = 'broomwagon';
const kubeLinter = process.env['KUBE_LINTER'] ?? 'kube-linter';
const hasKubeLinter = spawnSync(kubeLinter, ['version']).status === 0;

const withValues = (...values: string[]) => values.flatMap((value) => ['--set', value]);
/** Odd but valid values. */
const ODD: [title: string, release: string, args: string[]][] = [
  ['the longest name of a release', 'a'.repeat(53), withValues('nats.replicas=3', 'redis.mode=cluster')],
  [
    'a long fullnameOverride that is cut at a hyphen',
    'x',
    withValues(`fullnameOverride=${'b'.repeat(39)}-${'c'.repeat(20)}`),
  ],
  ['a name of a release that ends with a digit', 'run-1', withValues('redis.backup.enabled=true')],
  [
    'texts that YAML reads as other types',
    'x',
    ['--set-string', 'settings.NATS_NKEY_SEED=0123,settings.POOL=yes,settings.LOG_LEVEL=null'],
  ],
  [
    'quotes, braces and line ends in settings',
    'x',
    ['--set-json', 'settings={"ENGINE_URLS":"a: \'b\' # {{ c }}\\n- \\"d\\""}'],
  ],
  [
    'numbers above a million',
    'x',
    withValues('settings.MAX_WAITERS=25000000', 'worker.settings.DRAIN_MS=1', 'userId=1000680000'),
  ],
  ['no user ids, by null', 'x', withValues('userId=null', 'nats.userId=null', 'redis.userId=null')],
  [
    'no service but the worker',
    'x',
    withValues(
      'loadBalancer.enabled=false',
      'trainerCoordinator.enabled=false',
      'gateway.enabled=false',
      'adminApi.enabled=false',
    ),
  ],
  [
    'neither NATS nor Redis',
    'x',
    withValues('nats.enabled=false', 'nats.url=nats://n:4222', 'redis.enabled=false', 'redis.url=redis://r:6379'),
  ],
  ['no replicas', 'x', withValues('defaults.replicas=0')],
  [
    'lists and maps that are null',
    'x',
    withValues('objects=null', 'labels=null', 'image.pullSecrets=null', 'defaults.env=null'),
  ],
  [
    'everything with the production values',
    'x',
    ['-f', `${CHART}/values-production.yaml`, '-f', `${VALUES}/everything.yaml`],
  ],
  ['a local cluster', RELEASE_NAME, ['-f', 'deploy/local/values.yaml']],
  [
    'production values on OpenShift',
    'x',
    ['-f', `${CHART}/values-production.yaml`, '-f', `${CHART}/values-openshift.yaml`],
  ],
];
const FILES = readdirSync(VALUES).map((file): (typeof ODD)[number] => [
  file,
  RELEASE_NAME,
  ['-f', `${VALUES}/${file}`],
]);

describe.each([...FILES, ...ODD])('with %s', (_, release, args) => {
  it('passes helm lint, and makes objects with names and labels of at most 63 characters', async () => {
    await helm('lint', '--strict', CHART, ...args);
    const objects = objectsIn(await helm('template', release, CHART, '--namespace', 'rl', ...args));
    expect(objects.length).toBeGreaterThan(2);
    for (const { kind, metadata } of objects) {
      // Kubernetes adds a time to the name of a CronJob.
      expect(metadata.name.length, `${kind} ${metadata.name}`).toBeLessThanOrEqual(kind === 'CronJob' ? 52 : 63);
      for (const label of Object.values(metadata.labels ?? {})) expect(label.length, label).toBeLessThanOrEqual(63);
    }
    const ids = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''} ${metadata.name}`);
    expect(ids.filter((id, index) => ids.indexOf(id) !== index)).toEqual([]);
  });

  it.for(KUBERNETES_VERSIONS)('makes objects of the schemas of Kubernetes %s', async (version, { skip }) => {
    const schemas = inject('schemas');
    if (schemas === undefined) return skip('the package index has no schemas of Kubernetes');
    const folder = mkdtempSync(join(tmpdir(), 'broomwagon-values-'));
    const file = join(folder, 'objects.yaml');
    const apiVersions = ['--kube-version', version];
    writeFileSync(file, await helm('template', release, CHART, '--namespace', 'rl', ...apiVersions, ...args));
    const location = `${schemas}/${version}/{{.ResourceKind}}{{.KindSuffix}}.json`;
    const options = ['-strict', '-summary', '-kubernetes-version', version, '-skip', OTHER_KINDS];
    expect(await run('kubeconform', ...options, '-schema-location', location, file)).toContain('Invalid: 0, Errors: 0');
    rmSync(folder, { recursive: true });
  });
});

it('passes kube-linter with default and production values', async ({ skip }) => {
  if (!hasKubeLinter) skip('kube-linter is neither named in KUBE_LINTER nor on PATH, and no package registry has it');
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-linted-'));
  const files = [[], ['-f', `${CHART}/values-production.yaml`]].map(async (args, index) => {
    writeFileSync(join(folder, `${index}.yaml`), await helm('template', RELEASE_NAME, CHART, '--skip-tests', ...args));
  });
  await Promise.all(files);
  const { status, stdout } = spawnSync(kubeLinter, ['lint', folder], { encoding: 'utf8' });
  expect(stdout).toContain('No lint errors found');
  expect(status).toBe(0);
  rmSync(folder, { recursive: true });
});
