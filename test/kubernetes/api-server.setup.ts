import { generateKeyPairSync, randomUUID } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, ProcessGroup } from '@broomwagon/testing';
import type { TestProject } from 'vitest/node';
import { KubernetesClient, type ApiServerAccess } from './kubernetes-client';

declare module 'vitest' {
  interface ProvidedContext {
    apiServer: ApiServerAccess;
    /** Folder with helm. */
    programs: string;
    /** Folders with CRDs. */
    crds: string[];
    /** Folder with the schemas of Kubernetes for kubeconform; undefined: the package index has none. */
    schemas: string | undefined;
  }
}

/** An address of the network namespace that is not a loopback address. */
const ADDRESS = '10.244.0.1';
const START_TIMEOUT_MS = 120_000;

/** A real API server with its etcd, for all files. There are no controllers: the tests write their objects. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const tools = JSON.parse(process.env['KUBERNETES_TOOLS']!) as { programs: string; crds: string[]; schemas?: string };
  const folder = mkdtempSync(join(tmpdir(), 'broomwagon-kubernetes-'));
  const group = new ProcessGroup({ logFolder: join(folder, 'logs') });
  const stop = async () => {
    await group.stopAll(5_000);
    rmSync(folder, { recursive: true });
  };
  try {
    const etcd = `http://127.0.0.1:${await freePort()}`;
    const peers = `http://127.0.0.1:${await freePort()}`;
    await group.start({
      name: 'etcd',
      // The module of etcd gives its program the name `server`.
      command: [
        join(tools.programs, 'server'),
        `--data-dir=${join(folder, 'etcd')}`,
        `--listen-client-urls=${etcd}`,
        `--advertise-client-urls=${etcd}`,
        `--listen-peer-urls=${peers}`,
        `--initial-advertise-peer-urls=${peers}`,
        `--initial-cluster=default=${peers}`,
        '--unsafe-no-fsync',
      ],
      ready: `${etcd}/readyz`,
      readyTimeoutMs: START_TIMEOUT_MS,
    });

    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
    const key = join(folder, 'service-accounts.key');
    writeFileSync(key, privateKey.export({ type: 'pkcs8', format: 'pem' }));
    const token = randomUUID();
    writeFileSync(join(folder, 'tokens.csv'), `${token},admin,admin,system:masters\n`);
    const port = await freePort();
    const certificate = join(folder, 'certificates', 'apiserver.crt');
    const access = (): ApiServerAccess => ({
      url: `https://${ADDRESS}:${port}`,
      ca: readFileSync(certificate, 'utf8'),
      token,
    });
    await group.start({
      name: 'kube-apiserver',
      command: [
        join(tools.programs, 'kube-apiserver'),
        `--etcd-servers=${etcd}`,
        `--advertise-address=${ADDRESS}`,
        `--bind-address=${ADDRESS}`,
        `--secure-port=${port}`,
        `--cert-dir=${join(folder, 'certificates')}`,
        `--token-auth-file=${join(folder, 'tokens.csv')}`,
        '--service-account-issuer=https://kubernetes.default.svc',
        `--service-account-key-file=${key}`,
        `--service-account-signing-key-file=${key}`,
        '--service-cluster-ip-range=10.96.0.0/24',
        '--authorization-mode=RBAC',
      ],
      ready: async () => (await new KubernetesClient(access()).get('/readyz')).status === 200,
      readyTimeoutMs: START_TIMEOUT_MS,
    });
    project.provide('apiServer', access());
    project.provide('programs', tools.programs);
    project.provide('crds', tools.crds);
    project.provide('schemas', tools.schemas);
    return stop;
  } catch (error) {
    await stop();
    throw error;
  }
}
