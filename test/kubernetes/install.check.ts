import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, it } from 'vitest';
import { CHART, helm } from './chart';
import { KubernetesClient } from './kubernetes-client';

const admin = new KubernetesClient(inject('apiServer'));

it('is installed, updated and removed by helm, and keeps its passwords', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-kubeconfig-'));
  const { url, ca, token } = inject('apiServer');
  const cluster = { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'test', cluster }],
    users: [{ name: 'test', user: { token } }],
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
    'current-context': 'test',
  };
  writeFileSync(join(folder, 'config'), JSON.stringify(config));
  const access = ['--kubeconfig', join(folder, 'config'), '--namespace', 'installed'];
  await admin.createNamespace('installed');
  const secrets = () =>
    Promise.all(
      ['broomwagon-passwords', 'broomwagon-worker'].map(
        async (name) => (await admin.get(`/api/v1/namespaces/installed/secrets/${name}`)).body.data!,
      ),
    );
  expect(await helm('install', 'broomwagon', CHART, ...access)).toContain('STATUS: deployed');
  const before = await secrets();
  expect(Object.keys(before[0]!).length).toBe(19);
  const updated = await helm(
    'upgrade',
    'broomwagon',
    CHART,
    '--reset-then-reuse-values',
    '--set',
    'worker.replicas=5',
    ...access,
  );
  expect(updated).toContain('REVISION: 2');
  expect(await secrets()).toEqual(before);
  const { body } = await admin.get('/apis/apps/v1/namespaces/installed/deployments/broomwagon-worker');
  expect(body.spec).toMatchObject({ replicas: 5 });
  await helm('upgrade', 'broomwagon', CHART, '--set', 'worker.autoscaling.enabled=true', ...access);
  const scaled = await admin.get('/apis/apps/v1/namespaces/installed/deployments/broomwagon-worker');
  expect(scaled.body.spec).toMatchObject({ replicas: 5 });
  const change = (values: string) => helm('upgrade', 'broomwagon', CHART, '--set', values, ...access);
  await expect(change('redis.mode=cluster')).rejects.toThrow('single cannot become cluster of 3 primaries');
  expect(await change('redis.mode=sentinel')).toContain('REVISION: 4');
  await expect(change('redis.mode=single')).rejects.toThrow('redis: sentinel cannot become single');
  await expect(change('redis.mode=sentinel,nats.replicas=3')).rejects.toThrow('nats.replicas: 1 cannot become 3');
  // A volume can grow only by the steps of docs/operations/install.md: delete the StatefulSet, then update.
  await expect(change('redis.mode=sentinel,redis.persistence.size=20Gi')).rejects.toThrow('Forbidden');
  const set = '/apis/apps/v1/namespaces/installed/statefulsets/broomwagon-redis';
  expect((await admin.send('DELETE', set)).status).toBe(200);
  expect(await change('redis.mode=sentinel,redis.persistence.size=20Gi')).toContain('REVISION: 6');
  expect(await helm('uninstall', 'broomwagon', ...access)).toContain('uninstalled');
  rmSync(folder, { recursive: true });
});
