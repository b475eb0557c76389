// Finds paths in code and documents that name no file or folder of the repository, for example a spec that has moved.
// Part of `node scripts/lint-text.mjs`.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { root } from './prepare.mjs';

const FILES = ['*.md', '*.ts', '*.tsx', '*.mjs', '*.mts', '*.cjs', '*.lua', '*.py', '*.yaml', '*.yml', '*.json'];
/** A path from the root, also with `*` and `{one,other}`. */
const PATH =
  /(?<![\w./@{-])(?:(?:libs|lab|tools|test|scripts|docs|deploy|clients)|apps(?!\/v1\b))\/[\w.{},*/-]*[\w}*]/g;
/** First column of the table of tests, whose names are below `test/`. */
const TEST_OF_TABLE = /^\| `([\w/-]+?)\/?`/;
/** Paths of older builds, of test data, and of files that a developer makes. */
const ALLOWED = ['libs/state/src/scripts', 'apps/one/src/more', 'lab/engine-simulator/recordings'];

const listFiles = (...patterns) =>
  execFileSync('git', ['ls-files', ...patterns], { cwd: root, encoding: 'utf8' })
    .split('\n')
    .filter((path) => path !== '' && existsSync(join(root, path)));

/** Matches files at or below a path, and files whose names it begins up to a `.` or a `-`: vitest takes such names. */
function toPattern(path) {
  const text = path
    .replace(/\.js$/, '.ts')
    .replaceAll('.', '\\.')
    .replaceAll(/\*\*\/|\*/g, (stars) => (stars === '*' ? '[^/]*' : '(?:.*/)?'))
    .replaceAll(/\{([^}]*)\}/g, (_, names) => `(?:${names.replaceAll(',', '|')})`);
  return new RegExp(`^${text}(?:$|[./-])`);
}

/** One fault for each name of a file that is missing. */
export function findMissingPaths() {
  const files = listFiles();
  const isThere = new Map(ALLOWED.map((path) => [path, true]));
  const exists = (path) => {
    if (!isThere.has(path)) {
      const pattern = toPattern(path);
      isThere.set(
        path,
        files.some((file) => pattern.test(file)),
      );
    }
    return isThere.get(path);
  };
  return listFiles(...FILES).flatMap((file) =>
    readFileSync(join(root, file), 'utf8')
      .split('\n')
      .flatMap((line, index) => {
        const [, test] = (file === 'test/README.md' && TEST_OF_TABLE.exec(line)) || [];
        const paths = [...line.matchAll(PATH)].map(([path]) => path);
        return [...paths, ...(test === undefined ? [] : [`test/${test}`])]
          .filter((path) => !exists(path) && !exists(normalize(join(dirname(file), path))))
          .map((path) => `${file}:${index + 1}: no file ${path}`);
      }),
  );
}
