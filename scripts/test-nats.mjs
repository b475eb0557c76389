// `npm run test:nats`: specs of messaging, permissions and outages with the NATS of docker-compose.yml and of the
// chart. Builds nats-server from its Go module, once; needs Go. NATS_SERVER names a nats-server of another version in
// its place, as the oldest one that is supported (Debian 12). `-- test/gateway-outages` runs other specs, `-- --config
// test/cluster/vitest.config.mjs test/cluster/nats` the NATS cluster.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { findGo } from '../test/kubernetes/find-go.mjs';
import { build, cannotRun, install, requireNode, root } from './prepare.mjs';
import { runWithServer } from './run-with-server.mjs';

const FILES = [
  'libs/messaging',
  'test/permissions',
  'apps/gateway/src/rounds/rounds',
  'test/gateway-outages',
  'test/servers-that-restart',
  'test/start-over-tls',
  'apps/trainer-coordinator/src/events',
];

requireNode();
install();
build();
const [, version] = /image: nats:(\d+\.\d+\.\d+)/.exec(readFileSync(join(root, 'docker-compose.yml'), 'utf8'));
const cache = process.env.BROOMWAGON_CACHE ?? join(homedir(), '.cache', 'broomwagon');
const folder = join(cache, 'nats', version);
const program = process.env.NATS_SERVER ?? join(folder, 'nats-server');
if (!existsSync(program)) {
  const go = findGo('test:nats builds nats-server');
  console.log(`Building nats-server ${version} (once, some minutes) ...`);
  const module = `github.com/nats-io/nats-server/v2@v${version}`;
  const env = { ...process.env, GOBIN: folder, GOFLAGS: '-mod=mod', CGO_ENABLED: '0' };
  const { status } = spawnSync(go, ['install', module], { stdio: 'inherit', env });
  if (status !== 0) cannotRun(`nats-server ${version} cannot be built from its Go module`);
}
const files = process.argv.slice(2);
process.exit(
  runWithServer('nats-server', program, files.length > 0 ? files : FILES, { NATS_URL: '', TEST_NATS_URL: '' }),
);
