import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { waitUntil } from '@broomwagon/testing';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { CHART, helm, objectsIn, toPod, rendered } from './chart';
import { KubernetesClient, type KubernetesObject } from './kubernetes-client';

const EVERYTHING = ['-f', 'test/kubernetes/values/everything.yaml'];
const VALUES = 'test/kubernetes/values';
const files = readdirSync(VALUES);
const SETS: [string, string[]][] = [
  ['default values', []],
  ...files.map((file): [string, string[]] => [file, ['-f', `${VALUES}/${file}`]]),
];
const CONTAINER = {
  securityContext: { readOnlyRootFilesystem: true },
  resources: { limits: { memory: expect.anything() }, requests: { cpu: expect.anything() } },
};
/** Placement of every pod in everything.yaml. */
const PLACEMENT = {
  nodeSelector: { 'kubernetes.io/os': 'linux' },
  tolerations: [{ key: 'dedicated', operator: 'Exists' }],
  priorityClassName: 'high',
};
const admin = new KubernetesClient(inject('apiServer'));

const named = (objects: readonly KubernetesObject[], kind: string, name: string) =>
  objects.find((one) => one.kind === kind && one.metadata.name === name);

interface Definition {
  spec: { group: string; names: { plural: string }; versions: { name: string; served: boolean }[] };
}

beforeAll(async () => {
  const definitions = inject('crds')
    .flatMap((folder) => readdirSync(folder).map((file) => join(folder, file)))
    .flatMap((file) => objectsIn(readFileSync(file, 'utf8')))
    .filter(({ kind }) => kind === 'CustomResourceDefinition') as (KubernetesObject & Definition)[];
  for (const definition of definitions) await admin.create(definition, '');
  for (const { spec } of definitions) {
    const { name } = spec.versions.find(({ served }) => served)!;
    const path = `/apis/${spec.group}/${name}/${spec.names.plural}`;
    await waitUntil(async () => (await admin.get(path)).status === 200, { what: path, timeoutMs: 60_000 });
  }
  await admin.createNamespace('engines');
  const metadata = { name: 'high' };
  await admin.create({ apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata, value: 1_000 }, '');
});

describe.each(SETS)('with %s', (name, options) => {
  const namespace = `rl-${SETS.findIndex(([one]) => one === name)}`;
  let objects: KubernetesObject[];
  let pods: NonNullable<ReturnType<typeof toPod>>[];

  beforeAll(async () => {
    objects = await rendered('broomwagon', '--namespace', namespace, ...options);
    pods = objects.flatMap((object) => toPod(object) ?? []);
    await admin.createNamespace(namespace);
  });

  it('passes helm lint without a warning', async () => {
    expect(await helm('lint', '--strict', CHART, ...options)).toContain('1 chart(s) linted, 0 chart(s) failed');
  });

  it('makes objects that the API server accepts, without unknown fields', async () => {
    for (const object of objects.filter(({ kind }) => kind !== 'Pod')) await admin.create(object, namespace);
    expect(objects.length).toBeGreaterThan(8);
  });

  it('makes pods that the level "restricted" admits, with probes, bounded memory and a read-only root', async () => {
    expect(pods.length).toBeGreaterThan(2);
    for (const pod of pods) {
      await admin.create(pod, namespace, '&dryRun=All');
      const isEverything = options.at(-1)?.endsWith('everything.yaml');
      const more = isEverything ? { imagePullSecrets: [{ name: 'registry' }] } : {};
      const isPlaced = isEverything && !pod.metadata.name.endsWith('-test');
      expect(pod.spec, pod.metadata.name).toMatchObject({
        enableServiceLinks: false,
        ...more,
        ...(isPlaced && PLACEMENT),
      });
      // OpenShift refuses a number that is not of its namespace.
      if (name === 'openshift.yaml') expect(pod.spec.securityContext).not.toHaveProperty('runAsUser');
      else expect(pod.spec.securityContext.runAsUser).toBeGreaterThan(0);
      for (const container of pod.spec.containers) {
        expect(container).toMatchObject(CONTAINER);
        // Until a postStart hook has ended, nobody else knows the address of the pod.
        expect(container.lifecycle?.postStart, pod.metadata.name).toBeUndefined();
        if (/-(test|restore-\d|redis-cluster-\w+|backup)$/.test(pod.metadata.name)) continue;
        const probes = Object.keys(container).filter((key) => key.endsWith('Probe'));
        expect(probes.toSorted(), pod.metadata.name).toEqual(['livenessProbe', 'readinessProbe', 'startupProbe']);
      }
    }
  });

  it('gives a token of the API server only to the load-balancer, and only when it discovers engines', () => {
    const withToken = pods.filter(({ spec }) => spec.automountServiceAccountToken !== false);
    const expected = options.at(-1)?.endsWith('everything.yaml') ? ['broomwagon-load-balancer'] : [];
    expect(withToken.map(({ metadata }) => metadata.name)).toEqual(expected);
    const accounts = objects.filter(({ kind }) => kind === 'ServiceAccount');
    for (const account of accounts) expect(account['automountServiceAccountToken']).toBe(false);
  });

  it('refers only to objects that exist', () => {
    for (const { metadata, spec } of pods.filter((pod) => !pod.metadata.name.endsWith('-test'))) {
      const { serviceAccountName = '', containers, volumes = [] } = spec;
      expect(named(objects, 'ServiceAccount', serviceAccountName), metadata.name).toBeDefined();
      const sources = [
        ...containers.flatMap(({ envFrom }) => envFrom ?? []),
        ...volumes,
      ] as (typeof volumes)[number][] & (typeof containers)[number]['envFrom'];
      for (const { configMapRef, configMap, secretRef } of sources) {
        const map = configMapRef ?? configMap;
        if (map) expect(named(objects, 'ConfigMap', map.name), map.name).toBeDefined();
        const isOurs = secretRef?.name.startsWith('broomwagon-') && !/^(another-pool|argo-cd)\.yaml$/.test(name);
        if (isOurs) expect(named(objects, 'Secret', secretRef!.name), secretRef!.name).toBeDefined();
      }
    }
    const selectors = new Set(['Service', 'NetworkPolicy', 'PodDisruptionBudget']);
    for (const { kind, metadata, spec } of objects.filter((object) => selectors.has(object.kind))) {
      const selector = (spec!['selector'] ?? spec!['podSelector']) as Record<string, unknown>;
      const labels = Object.entries((selector['matchLabels'] ?? selector) as Record<string, string>);
      const selected = pods.filter((pod) => labels.every(([key, value]) => pod.metadata.labels?.[key] === value));
      expect(selected.length, `${kind} ${metadata.name}`).toBe(1);
    }
  });
});

describe('values', () => {
  it('give pods as long to end as the service, its drain and its removal from the Service take', async () => {
    const objects = await rendered('broomwagon', ...EVERYTHING);
    const getGracePeriod = (app: string) =>
      toPod(named(objects, 'Deployment', `broomwagon-${app}`)!)!.spec.terminationGracePeriodSeconds;
    expect(['load-balancer', 'worker', 'gateway'].map(getGracePeriod)).toEqual([30, 95, 35]);
    await expect(rendered('broomwagon', '--set', 'worker.settings.DRAIN_MS=25000')).rejects.toThrow(
      'worker: SHUTDOWN_TIMEOUT_MS (25000) must be above DRAIN_MS (25000)',
    );
  });

  it('reach the services as they read them', async () => {
    const objects = await rendered('broomwagon', ...EVERYTHING);
    expect(named(objects, 'ConfigMap', 'broomwagon-admin-api')!.data).toMatchObject({
      AUDIT_STREAM_MAX_AGE_MS: '7776000000',
      LOG_LEVEL: 'debug',
      NATS_STREAM_REPLICAS: '3',
      NATS_URL: 'tls://broomwagon-nats:4222',
    });
  });

  it('with several NATS servers let only these open the port of the cluster, with a password', async () => {
    const objects = await rendered('broomwagon', ...EVERYTHING);
    const { NATS_CLUSTER_PASSWORD, NATS_ROUTES } = named(objects, 'Secret', 'broomwagon-passwords')!['stringData'] as {
      [name: string]: string;
    };
    const host = (replica: number) => `broomwagon-nats-${replica}.broomwagon-nats-servers.default.svc:6222`;
    const routes = [0, 1, 2].map((replica) => `nats://cluster:${NATS_CLUSTER_PASSWORD}@${host(replica)}`);
    expect(NATS_ROUTES).toBe(`[${routes.join(', ')}]`);
    expect(named(objects, 'ConfigMap', 'broomwagon-nats')!.data!['nats.conf']).toContain(
      'authorization { user: cluster, password: $NATS_CLUSTER_PASSWORD }',
    );
    const component = { 'app.kubernetes.io/component': 'nats' };
    expect(named(objects, 'NetworkPolicy', 'broomwagon-nats')!.spec!['ingress']).toContainEqual({
      from: [{ podSelector: { matchLabels: expect.objectContaining(component) as object } }],
      ports: [{ port: 'cluster' }],
    });
  });

  it('spread the pods of each service over nodes and zones', async () => {
    const deployments = (await rendered('broomwagon')).filter(({ kind }) => kind === 'Deployment');
    expect(deployments).toHaveLength(5);
    for (const deployment of deployments) {
      expect(toPod(deployment)!.spec, deployment.metadata.name).toMatchObject({
        affinity: { podAntiAffinity: expect.anything() as object },
        topologySpreadConstraints: [
          { topologyKey: 'topology.kubernetes.io/zone', matchLabelKeys: ['pod-template-hash'] },
        ],
      });
    }
  });

  it('with several Redis servers spread them, evict one at a time, and open the ports that they need', async () => {
    const findPorts = (objects: readonly KubernetesObject[], kind: string, name: string) =>
      JSON.stringify(named(objects, kind, name)!.spec).match(/(?<="port":)[^,}]+/g);
    for (const [mode, servers, ports] of [
      ['sentinel', 3, ['"redis"', '"sentinel"']],
      ['cluster', 6, ['"redis"', '"bus"']],
    ] as const) {
      const objects = await rendered('broomwagon', '--set', `redis.mode=${mode}`);
      const set = named(objects, 'StatefulSet', 'broomwagon-redis')!;
      expect(set.spec).toMatchObject({ replicas: servers, serviceName: 'broomwagon-redis-servers' });
      expect(toPod(set)!.spec).toMatchObject({
        affinity: { podAntiAffinity: expect.anything() as object },
        topologySpreadConstraints: [{ topologyKey: 'topology.kubernetes.io/zone' }],
      });
      expect(named(objects, 'PodDisruptionBudget', 'broomwagon-redis')!.spec).toMatchObject({ maxUnavailable: 1 });
      expect(findPorts(objects, 'NetworkPolicy', 'broomwagon-redis')).toEqual(ports);
      // The name of all servers leads to a replica too.
      expect(named(objects, 'Service', 'broomwagon-redis')).toBeUndefined();
      const { REDIS_URL } = named(objects, 'Secret', 'broomwagon-worker')!['stringData'] as Record<string, string>;
      expect(REDIS_URL!.match(/broomwagon-redis-\d\.broomwagon-redis-servers\.default\.svc:/g)).toHaveLength(servers);
    }
  });

  it('give the Job that makes a Redis Cluster another name when it changes, because no Job can be changed', async () => {
    const nameWith = async (values: string) =>
      (await rendered('broomwagon', '--set', `redis.mode=cluster,${values}`)).find(({ kind }) => kind === 'Job')!
        .metadata.name;
    const names = await Promise.all(
      ['worker.replicas=1', 'worker.replicas=2', 'redis.cluster.replicas=2'].map(nameWith),
    );
    expect(names[0]).toBe(names[1]);
    expect(names[2]).not.toBe(names[0]);
  });

  it('scale by the metrics of this release only, and not to zero when Prometheus has none', async () => {
    const objects = await rendered('broomwagon', '--namespace', 'rl', ...EVERYTHING);
    const scaled = objects.filter(({ kind }) => kind === 'ScaledObject');
    expect(scaled).toHaveLength(3);
    for (const { spec } of scaled) {
      const [{ metadata }] = spec!['triggers'] as [{ metadata: Record<string, string> }];
      expect(metadata['ignoreNullValues']).toBe('false');
      expect(metadata['query']!.split('pool=').slice(0, -1).join()).toMatch(/^(?:.*namespace="rl",)+$/);
    }
  });

  it('let nodes be drained while no service is ready, and helm test leave out a service that may have no pod', async () => {
    const objects = await rendered('broomwagon', ...EVERYTHING);
    const budgets = objects.filter(({ kind }) => kind === 'PodDisruptionBudget');
    const ofServices = budgets.filter(({ metadata }) => !/-(nats|redis)$/.test(metadata.name));
    expect(ofServices).toHaveLength(5);
    for (const { spec } of ofServices) expect(spec).toMatchObject({ unhealthyPodEvictionPolicy: 'AlwaysAllow' });
    const test = JSON.stringify(named(objects, 'Pod', 'broomwagon-test')!.spec);
    expect([test.includes('broomwagon-gateway:'), test.includes('broomwagon-worker:')]).toEqual([true, false]);
  });

  it('let Prometheus and helm test call services with TLS', async () => {
    const objects = await rendered('broomwagon', ...EVERYTHING);
    const getEndpoints = (app: string) => named(objects, 'ServiceMonitor', `broomwagon-${app}`)!.spec!['endpoints'];
    const tlsConfig = { serverName: 'broomwagon-admin-api', ca: { secret: { name: 'http-ca', key: 'ca.crt' } } };
    expect(getEndpoints('admin-api')).toMatchObject([{ scheme: 'https', tlsConfig }]);
    // The certificate of the gateway comes from `tlsSecret`.
    expect(getEndpoints('gateway')).toMatchObject([
      { scheme: 'https', tlsConfig: { serverName: 'broomwagon-gateway' } },
    ]);
    expect(getEndpoints('worker')).not.toHaveProperty('0.scheme');
    const test = named(objects, 'Pod', 'broomwagon-test')!;
    expect(JSON.stringify(test.spec)).toContain('"NODE_EXTRA_CA_CERTS","value":"/etc/broomwagon/http/ca.crt"');
  });

  it('are refused when they are unknown or contradict each other', async () => {
    const refusals: [string, string][] = [
      ['loadBalancer.replica=3', 'replica'],
      ['image.digest=sha256:12', 'digest'],
      ['settings.logLevel=debug', 'logLevel'],
      ['discovery.enabled=true', 'discovery.labelSelector is required'],
      ['gateway.scaledObject.enabled=true', 'gateway: only worker can have a scaledObject'],
      ['adminApi.ingress.enabled=true', 'adminApi.ingress.host is required'],
      ['redis.clientTlsSecret=services-tls', 'redis.clientTlsSecret needs redis.tlsSecret'],
      ['redis.mode=sentinel,redis.persistence.enabled=false', 'redis.mode sentinel needs redis.persistence.enabled'],
      ['redis.mode=cluster,redis.cluster.primaries=2', 'primaries'],
      ['redis.restore=true,redis.persistence.enabled=false', 'redis.restore needs redis.persistence.enabled'],
      ['worker.scaledObject.enabled=true', 'keda.prometheusUrl is required'],
      ['worker.scaledObject.enabled=true,worker.autoscaling.enabled=true', 'exclude each other'],
    ];
    for (const [values, complaint] of refusals) {
      await expect(rendered('broomwagon', '--set', values), values).rejects.toThrow(complaint);
    }
  });
});

it('packs the alert rules and the dashboard, which are links in the sources', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-chart-'));
  await helm('package', CHART, '--destination', folder);
  const [chart] = readdirSync(folder);
  const objects = objectsIn(await helm('template', 'x', join(folder, chart!), ...EVERYTHING));
  const [rules] = objectsIn(readFileSync('deploy/prometheus/alerts.yaml', 'utf8'));
  expect(named(objects, 'PrometheusRule', 'x-broomwagon')!.spec).toEqual(rules);
  const dashboard = named(objects, 'ConfigMap', 'x-broomwagon-dashboard')!.data!['broomwagon.json'];
  expect(dashboard).toBe(readFileSync('deploy/grafana/broomwagon.json', 'utf8'));
  rmSync(folder, { recursive: true });
});

it('changes thresholds, times, severities, objectives and links of the alerts by values, and refuses unknown ones', async () => {
  const rule = 'monitoring.prometheusRule';
  const set = (...values: string[]) =>
    rendered('x', ...[`${rule}.enabled=true`, ...values].flatMap((value) => ['--set', value]));
  const slow = `${rule}.alerts.BroomwagonStepSlow`;
  const objects = await set(
    'monitoring.runbookBaseUrl=https://git.example.com/b/',
    `${slow}.threshold=3`,
    `${slow}.for=5m`,
    `${slow}.severity=critical`,
    `${rule}.alerts.BroomwagonHttpErrors.enabled=false`,
  );
  const { groups } = named(objects, 'PrometheusRule', 'x-broomwagon')!.spec as {
    groups: { rules: { alert?: string; expr: string }[] }[];
  };
  const rules = groups.flatMap((group) => group.rules);
  expect(rules.find(({ alert }) => alert === 'BroomwagonStepSlow')).toMatchObject({
    expr: expect.stringMatching(/ > 3$/) as string,
    for: '5m',
    labels: { severity: 'critical' },
    annotations: { runbook_url: 'https://git.example.com/b/docs/operations/alerts.md#broomwagonstepslow' },
  });
  expect(rules.some(({ alert }) => alert === 'BroomwagonHttpErrors')).toBe(false);
  await expect(set(`${rule}.alerts.Unknown.for=5m`)).rejects.toThrow('there is no such alert');
  await expect(set(`${rule}.alerts.BroomwagonLeaseDrift.threshold=3`)).rejects.toThrow('has no threshold');
});

it('does not restart NATS and Redis when only the version of the chart changes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-chart-'));
  await helm('package', CHART, '--version', '9.8.7', '--app-version', '9.8.7', '--destination', folder);
  const next = objectsIn(await helm('template', 'broomwagon', join(folder, 'broomwagon-9.8.7.tgz')));
  const now = await rendered('broomwagon');
  for (const name of ['broomwagon-nats', 'broomwagon-redis']) {
    const [old, updated] = [now, next].map((objects) => named(objects, 'StatefulSet', name)!);
    expect(updated!.metadata.labels).toMatchObject({ 'helm.sh/chart': 'broomwagon-9.8.7' });
    expect(toPod(updated!), name).toEqual(toPod(old!));
  }
  rmSync(folder, { recursive: true });
});
