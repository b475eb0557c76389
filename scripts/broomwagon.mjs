#!/usr/bin/env node
// `npx broomwagon`: the command line of operators.
import { existsSync } from 'node:fs';

const program = new URL('../dist/apps/cli/src/main.js', import.meta.url);
if (existsSync(program)) {
  await import(program);
} else {
  console.error('error: Broomwagon is not built: run `npm ci && npm run build` first');
  process.exitCode = 2;
}
