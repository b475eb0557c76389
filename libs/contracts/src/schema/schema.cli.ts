import 'reflect-metadata';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { asyncApiDocument } from './asyncapi';
import { readReplySchemas } from './reply-schemas';

/** `npm run schema` writes docs/protocol/asyncapi.json; with `--check` it fails when the committed copy is stale. */
function main(): void {
  const root = process.cwd();
  const file = join(root, 'docs/protocol/asyncapi.json');
  const text = `${JSON.stringify(asyncApiDocument(readReplySchemas(root)), null, 2)}\n`;
  if (!process.argv.includes('--check')) {
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
    console.log(`wrote ${file}`);
    return;
  }
  if (existsSync(file) && readFileSync(file, 'utf8') === text) return;
  console.error('docs/protocol/asyncapi.json is stale: run `npm run schema` and commit it.');
  process.exitCode = 1;
}

main();
