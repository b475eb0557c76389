// `npm run test:valkey`: the specs of libs/state and of the permissions of all users, against Valkey instead of Redis.
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { build, install, requireNode } from './prepare.mjs';
import { runWithServer } from './run-with-server.mjs';

const HELP = `No valkey-server: name one in VALKEY_SERVER, or put it on PATH. To build one:
  git clone --branch 8.0.1 https://github.com/valkey-io/valkey && make -C valkey MALLOC=libc BUILD_TLS=yes
  VALKEY_SERVER=valkey/src/valkey-server npm run test:valkey`;

function isExecutable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

const given = process.env.VALKEY_SERVER;
const places = given ? [given] : process.env.PATH.split(delimiter).map((folder) => join(folder, 'valkey-server'));
const server = places.find(isExecutable);
if (server === undefined) {
  console.error(HELP);
  process.exit(2);
}
requireNode();
install();
build();
const parts = process.argv.slice(2);
const environment = { REDIS_URL: '', TEST_REDIS_URL: '' };
process.exit(
  runWithServer('redis-server', server, parts.length > 0 ? parts : ['libs/state', 'test/permissions'], environment),
);
