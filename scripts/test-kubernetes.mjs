// `npm run test:kubernetes`: the Helm chart against helm and a real API server with its etcd, and discovery of engines by
// EndpointSlices. `-- discovery` runs a part. Needs Go for the first run, and Linux: the tests run in a network
// namespace, because EndpointSlices refuse loopback addresses; the names of pods are in an /etc/hosts of their own.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, cannotRun, install, requireNode } from './prepare.mjs';
import { runTests } from './vitest.mjs';

const NETWORK =
  'ip link set lo up && ip address add 10.244.0.1/24 dev lo && mount --bind "$KUBERNETES_HOSTS" /etc/hosts && exec "$@"';

const parts = process.argv.slice(2);
if (process.env.KUBERNETES_TOOLS) {
  process.exit(runTests(['--config', 'test/kubernetes/vitest.config.mjs', ...parts]));
}
requireNode();
install();
build();
const namespace = ['--net', '--mount', ...(process.getuid() === 0 ? [] : ['--map-root-user'])];
const { error: noNamespace, status: refused } = spawnSync('unshare', [...namespace, 'ip', 'link'], { stdio: 'ignore' });
if (noNamespace !== undefined || refused !== 0) cannotRun('unshare and ip of Linux cannot make a network namespace');
const { kubernetesTools } = await import('../test/kubernetes/tools.mjs');
const tools = kubernetesTools();
const folder = mkdtempSync(join(tmpdir(), 'broomwagon-hosts-'));
const hosts = join(folder, 'hosts');
writeFileSync(hosts, '127.0.0.1 localhost\n');
const { status } = spawnSync(
  'unshare',
  [...namespace, 'sh', '-c', NETWORK, 'sh', process.execPath, fileURLToPath(import.meta.url), ...parts],
  { stdio: 'inherit', env: { ...process.env, KUBERNETES_TOOLS: JSON.stringify(tools), KUBERNETES_HOSTS: hosts } },
);
rmSync(folder, { recursive: true });
process.exit(status ?? 1);
