import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { type MessageKind, ProtocolSchemas } from './protocol-schemas';

/** A fenced block of JSON; the words after `json` describe it, e.g. `lb.acquire request`. */
const BLOCK = /^ *```json(?: (\S+) (\S+))?\n([^]*?)^ *```$/gm;
/** A request in the text, e.g. `lb.leases {"serverId": ...}`. */
const INLINE = /`([a-z]+\.[a-z-]+) (\{[^`]*\})`/g;

const schemas = new ProtocolSchemas();
const FOLDERS = ['docs', 'libs', 'apps', 'lab', 'tools', 'deploy', 'scripts', 'test'];
const files = ['.', ...FOLDERS].flatMap((folder) =>
  readdirSync(folder, { recursive: folder !== '.', encoding: 'utf8' }).map((file) => join(folder, file)),
);
const pages = files.filter((file) => file.endsWith('.md'));
const examples = pages.flatMap((page) => {
  const text = readFileSync(page, 'utf8');
  const blocks = [...text.matchAll(BLOCK)].map(([, channel = '', kind = '', json]) => ({ page, channel, kind, json }));
  const inline = [...text.matchAll(INLINE)].map(([, channel, json]) => {
    return { page, channel, kind: 'request', json: json!.replaceAll(/: \.\.\./g, ': "example"') };
  });
  return [...blocks, ...inline];
});

it('finds the examples of the protocol page', () => {
  expect(examples.filter(({ page }) => page === 'docs/protocol/README.md').length).toBeGreaterThanOrEqual(4);
});

it.each(examples)('$page: $channel $kind fits its schema', ({ channel, kind, json }) => {
  expect(schemas.findChannel(`rollout.v1.pool.${channel}`), 'write ```json <operation> <kind>').toBe(channel);
  expect(schemas.fault(channel!, kind as MessageKind, JSON.parse(json!))).toBeUndefined();
});

/** In code of the text: a path from the root, or the end of the path of a file; `*` and `<name>` stand for any name. */
const FILE_NAME = new RegExp(
  `^(${FOLDERS.join('|')})/[\\w<>*./-]+$|^[\\w<*.][\\w<>*./-]*\\.(ts|mts|lua|mjs|cjs|json|md|yml)$`,
);

function isFile(name: string): boolean {
  const pattern = name
    .replaceAll('.', '\\.')
    .replaceAll(/<[^>]*>|\*/g, '[^/]+')
    .replace(/\/$/, '');
  const path = new RegExp(`(^|/)${pattern}$`);
  return files.some((file) => path.test(file));
}

/** All names in the pages that do not exist, as `<page>: <name>`. */
function missing(names: (text: string) => string[], exists: (name: string) => boolean): string[] {
  return pages.flatMap((page) =>
    names(readFileSync(page, 'utf8'))
      .filter((name) => !exists(name))
      .map((name) => `${page}: ${name}`),
  );
}

it('names only files that exist', () => {
  const namesIn = (text: string) => [...text.matchAll(/`([^`\n]+)`/g)].flatMap(([, code]) => code!.split(' '));
  expect(missing((text) => namesIn(text).filter((name) => FILE_NAME.test(name)), isFile)).toEqual([]);
});

it('names a test for each row of the table of failures', () => {
  const table = /^\| fault +\| what .*\n\|.*\n((?:\|.*\n)+)/m.exec(
    readFileSync('docs/operations/failures.md', 'utf8'),
  )!;
  const rows = table[1]!.trim().split('\n');
  const untested = rows.filter((row) => !/`[^`]*(\.(spec|check)\.ts|set-back)`/.test(row.split('|').at(-2)!));
  expect(untested).toEqual([]);
  expect(rows.length).toBeGreaterThan(20);
});

it('names only scripts that package.json has', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: object };
  const namesIn = (text: string) => [...text.matchAll(/npm run (?:--\w+ )*(\w[\w:-]*)/g)].map(([, name]) => name!);
  expect(missing(namesIn, (name) => Object.hasOwn(scripts, name))).toEqual([]);
});
