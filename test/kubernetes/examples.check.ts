import { readdirSync, readFileSync } from 'node:fs';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { objectsIn, toPod, rendered } from './chart';
import { KubernetesClient, type KubernetesObject } from './kubernetes-client';

const FOLDER = 'deploy/examples';
const NAMESPACE = 'examples';
const admin = new KubernetesClient(inject('apiServer'));
let chart: KubernetesObject[];

beforeAll(async () => {
  // Images of engines run as root.
  await admin.createNamespace(NAMESPACE, 'baseline');
  chart = await rendered('broomwagon');
});

it.each(['engines.yaml', 'trainer.yaml'])(
  'deploy/local/%s fits the level "restricted" and the values beside it',
  async (file) => {
    const objects = objectsIn(readFileSync(`deploy/local/${file}`, 'utf8'));
    await admin.createNamespace(`local-${file.split('.')[0]}`);
    for (const object of objects) await admin.create(object, `local-${file.split('.')[0]}`);
    const [pod] = objects.flatMap((object) => toPod(object) ?? []);
    await admin.create(pod!, `local-${file.split('.')[0]}`, '&dryRun=All');
    const release = await rendered('broomwagon', '-f', 'deploy/local/values.yaml');
    const names = release.map(({ metadata }) => metadata.name);
    for (const { envFrom = [] } of pod!.spec.containers) {
      for (const { secretRef } of envFrom) expect(names).toContain(secretRef!.name);
    }
    const service = objects.find(({ kind }) => kind === 'Service');
    const balancer = release.find(
      ({ kind, metadata: { name } }) => kind === 'ConfigMap' && name.endsWith('load-balancer'),
    )!;
    const selector = `kubernetes.io/service-name=${service?.metadata.name}`;
    if (service) expect(balancer.data!['K8S_LABEL_SELECTOR']).toBe(selector);
  },
);

describe.each(readdirSync(FOLDER))('%s', (file) => {
  const objects = objectsIn(readFileSync(`${FOLDER}/${file}`, 'utf8'));
  const [pod] = objects.flatMap((object) => toPod(object) ?? []);
  const [worker] = pod!.spec.initContainers!;
  const [engine] = pod!.spec.containers;

  it('is accepted by the API server, and its pods by the level "baseline"', async () => {
    for (const object of objects) await admin.create(object, NAMESPACE);
    await admin.create(pod!, NAMESPACE, '&dryRun=All');
  });

  it('has a worker with the command, the settings and the Secret of the chart', () => {
    const ours = chart.find(({ kind, metadata: { name } }) => kind === 'Deployment' && name === 'broomwagon-worker')!;
    const [{ command, image, envFrom }] = toPod(ours)!.spec.containers as [typeof worker & object];
    expect(worker).toMatchObject({ command, image, envFrom, restartPolicy: 'Always' });
  });

  it('keeps an engine until its requests are drained, and then gives it time to end', () => {
    const drainMs = 25_000;
    const preStopSeconds = Number(engine!.lifecycle!.preStop!.exec.command[1]);
    expect(preStopSeconds * 1_000).toBeGreaterThan(drainMs);
    // The sidecar ends last: SHUTDOWN_TIMEOUT_MS, of which the engine leaves the rest.
    expect(pod!.spec.terminationGracePeriodSeconds).toBeGreaterThan(preStopSeconds + 20 + 25);
  });
});
