import 'reflect-metadata';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { asyncApiDocument } from './asyncapi';
import { errorsPage } from './errors-page';
import { openApiDocument } from './openapi';

/**
 * `npm run schema` writes asyncapi.json, openapi.json and errors.md to docs/protocol; with `--check` it fails if one is
 * stale.
 */
function main(): void {
  const root = process.cwd();
  const made = {
    'docs/protocol/asyncapi.json': `${JSON.stringify(asyncApiDocument(root), null, 2)}\n`,
    'docs/protocol/openapi.json': `${JSON.stringify(openApiDocument(root), null, 2)}\n`,
    'docs/protocol/errors.md': errorsPage(),
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
