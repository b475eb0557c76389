import 'reflect-metadata';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { asyncApiDocument } from './asyncapi';
import { errorsPage } from './errors-page';
import { natsPermissions } from './nats-permissions';
import { openApiDocument } from './openapi';
import { pythonErrors, pythonTypes } from './python-types';

/**
 * `npm run schema` writes asyncapi.json, openapi.json and errors.md to docs/protocol, the types of clients/python, and
 * the permissions of NATS to deploy/nats; with `--check` it fails if one is stale.
 */
function main(): void {
  const root = process.cwd();
  const asyncApi = asyncApiDocument(root);
  const made = {
    'docs/protocol/asyncapi.json': `${JSON.stringify(asyncApi, null, 2)}\n`,
    'docs/protocol/openapi.json': `${JSON.stringify(openApiDocument(root), null, 2)}\n`,
    'docs/protocol/errors.md': errorsPage(),
    'clients/python/src/broomwagon/protocol.py': pythonTypes(asyncApi),
    'clients/python/src/broomwagon/errors.py': pythonErrors(),
    'deploy/nats/permissions.conf': natsPermissions(),
  };
  for (const [name, text] of Object.entries(made)) {
    const file = join(root, name);
    if (!process.argv.includes('--check')) {
      writeFileSync(file, text);
      console.log(`wrote ${file}`);
    } else if (!existsSync(file) || readFileSync(file, 'utf8') !== text) {
      console.error(`${name} is stale: run \`npm run schema\` and commit it.`);
      process.exitCode = 1;
    }
  }
}

main();
