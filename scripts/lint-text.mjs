// `node scripts/lint-text.mjs`: finds lines of more than 120 characters in product code, lists that are sorted without a
// comparator, names that are read from plain objects without `Object.hasOwn`, requests of nats.js that take any first
// message for the reply, unknown values of the console that are shown as 0, words that have been replaced in code and
// documents, links to files that do not exist, paths of missing files (named-paths.mjs), and too many words that stand for
// a noun (plain-words.mjs). Part of `npm run lint`.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findMissingPaths } from './named-paths.mjs';
import { findUnclearWords } from './plain-words.mjs';
import { root } from './prepare.mjs';

const MAX_LINE = 120;
/** Old names, images and personification, with the words to write instead. */
const WORDS = {
  'facts?': 'event',
  books: 'counts',
  'wish(es)?': 'request, constraints',
  'judges?': 'validator',
  'doubts?': 'reason it is unsupported',
  'traits?': 'index entry, label',
  'checkpoints?': 'partial save, job snapshot',
  'zombies?': 'stale epoch',
  void: 'expired',
};
const ALLOWED = [
  [/^lab\/bench\/src\/cost\/build\.ts$/, 'checkpoints'], // a folder of older builds
  [/^(libs\/testing|test)\//, 'zombie'], // a process
];
const PRODUCT = /^(apps|libs)\/(?!testing\/)(?!.*\.(spec|fixture)\.ts$)/;

/**
 * A list that is sorted without a comparator is sorted by the texts of its values: 10 comes before 9, the pair
 * `["a,b", 1]` before `["a", 2]`, and a value with a field `toString` throws. `sortTexts` of contracts takes texts only.
 */
const SORTED_AS_TEXTS = /\.(?:toSorted|sort)\(\)/g;
/** `sortTexts`, and files that sort typed arrays, whose values are compared as numbers. */
const SORTS = new Set([
  'libs/contracts/src/text.ts',
  'libs/policies/src/rebalance/tier-cost.ts',
  'libs/policies/src/rebalance/planned-server.ts',
  'libs/policies/src/what-if/what-if.ts',
]);

/**
 * A default for a named property of a plain object: the name may be `toString`, which every object has. `in` has the
 * same fault.
 */
const NAME_WITH_DEFAULT = /\w\[(?:name|key)\]!? *(?:\?\?|\|\|)|\b(?:if \(|&& |\|\| |return )!?\(?(?:name|key) in \w/g;

/**
 * A live value without an answer is not 0 and not an empty list: the console and admin-api say that it is unknown. A
 * number of a `Map` that has no such key is 0 (`counts.get(key) ?? 0`).
 */
const UNKNOWN_AS_NONE = /(?<!\.get\([^()]*\)) \?\? (?:0\b|\[\])/;
const LIVE_VALUES = /^apps\/(?:console\/src|admin-api\/src\/(?:operations|reports))\/(?!.*\.spec\.ts$)/;

/** `request` of nats.js takes the first message for the reply, also the acknowledgement of a JetStream stream. */
const FIRST_MESSAGE_AS_REPLY = /\b(?:nats|connection)\.request\(/;

/** Words of a line, including words within names. */
function wordsOf(path, line) {
  // `void` is also a word of TypeScript.
  const text = /\.tsx?$/.test(path) && !/^\s*(\/?\*|\/\/)/.test(line) ? line.replaceAll(/\bvoid\b/g, '') : line;
  return text.replaceAll(/([a-z])([A-Z])/g, '$1 $2').replaceAll('_', ' ');
}

function faultsOf(path) {
  const text = readFileSync(join(root, path), 'utf8');
  const faults = [];
  const isProduct = PRODUCT.test(path) && !path.endsWith('.md');
  for (const { index } of isProduct && !SORTS.has(path) ? text.matchAll(SORTED_AS_TEXTS) : []) {
    const number = text.slice(0, index).split('\n').length;
    faults.push(`${path}:${number}: sorted as texts; write a comparator, or use sortTexts`);
  }
  for (const { index } of isProduct && path.endsWith('.ts') ? text.matchAll(NAME_WITH_DEFAULT) : []) {
    const number = text.slice(0, index).split('\n').length;
    faults.push(`${path}:${number}: every object has names such as toString; use Object.hasOwn or a Map`);
  }
  for (const [index, line] of text.split('\n').entries()) {
    const at = `${path}:${index + 1}`;
    // Texts of pages (`.tsx`) are not broken into lines.
    if (isProduct && !path.endsWith('.tsx') && line.length > MAX_LINE) faults.push(`${at}: ${line.length} characters`);
    if (LIVE_VALUES.test(path) && UNKNOWN_AS_NONE.test(line)) {
      faults.push(`${at}: a value without an answer is not 0 or empty; show that it is unknown (LiveData)`);
    }
    if (path.endsWith('.ts') && FIRST_MESSAGE_AS_REPLY.test(line)) {
      faults.push(`${at}: a JetStream stream may answer first; use MessagingClient, or requestRaw of libs/testing`);
    }
    for (const [word, instead] of Object.entries(WORDS)) {
      const [found] = wordsOf(path, line).match(new RegExp(`\\b${word}\\b`, 'i')) ?? [];
      if (found === undefined || ALLOWED.some(([where, what]) => where.test(path) && what === found)) continue;
      faults.push(`${at}: "${found}"; write ${instead}`);
    }
    for (const [, target] of path.endsWith('.md') ? line.matchAll(/\]\(([^)#\s:]+)(?:#[^)]*)?\)/g) : []) {
      if (!existsSync(join(root, dirname(path), target))) faults.push(`${at}: no file ${target}`);
    }
  }
  return faults;
}

const files = execFileSync('git', ['ls-files', '*.ts', '*.tsx', '*.lua', '*.md'], {
  cwd: root,
  encoding: 'utf8',
}).split('\n');
const faults = files.filter((path) => path !== '' && existsSync(join(root, path))).flatMap(faultsOf);
faults.push(...findMissingPaths(), ...findUnclearWords());
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;
