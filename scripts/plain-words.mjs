// How plain the words of comments, test titles and names are, counted for product, tests and laboratory. Part of
// `node scripts/lint-text.mjs`; `node scripts/plain-words.mjs PATH...` lists the places below the paths.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { readComments } from './comments.mjs';
import { root } from './prepare.mjs';

/** Words that stand for a noun that the reader has to find. */
const FOR_NOUNS = /\b(those|that of|ones? that|what)\b/gi;
const WITHOUT_NOUN = /^(it|its|those|of|as|(?:for |by |to |from |with )?what|the same|whose|them|they|ones? that)\b/i;
/** Words with which a comment gives an exception or a comparison before it has named its subject. */
const WITHOUT_SUBJECT = /^(Like|Nor|Never|Null|Undefined|Absent|Thrown)\b/;
const TITLE = /\b(?:it|describe)(?:\.\w+(?:\([^)]*\))?)*\(\s*(['"`])(.*?)\1/g;
const OF_FUNCTION =
  /(?:function\*? |(?:const|let) |^\s+(?:(?:private|public|protected|static|async|override) )*)(\w+Of)\b(?=(?:<[^>]*>)?\(|(?:: [^=\n]+)? = (?:async )?(?:\(|\w+ =>))/gm;

/** Most words for nouns in 1,000 words, percent of comments without a noun, and functions named `...Of`. */
const BOUNDS = { forNouns: 2, withoutNoun: 2, ofFunctions: 40 };

function getArea(path) {
  if (/\.(spec|fixture|check)\.ts$|^(test|libs\/testing|tools|clients\/python\/tests)/.test(path)) return 'tests';
  return path.startsWith('lab/') ? 'lab' : 'product';
}

/** Counts of one file, and the texts that were counted. */
function readFile(path) {
  const text = readFileSync(join(root, path), 'utf8');
  const titles = path.endsWith('.ts') ? [...text.matchAll(TITLE)].map(([, , title]) => title) : [];
  const comments = readComments(path, text);
  const bare = [...comments, ...titles].map((one) => one.replace(/`[^`]*`/g, '``'));
  return {
    words: bare.join(' ').split(/\s+/).length,
    comments: comments.length,
    forNouns: bare.flatMap((one) => one.match(FOR_NOUNS)?.map(() => one) ?? []),
    withoutNoun: comments.filter((one) => WITHOUT_NOUN.test(one) || WITHOUT_SUBJECT.test(one)),
    ofFunctions: path.endsWith('.ts') ? [...new Set([...text.matchAll(OF_FUNCTION)].map(([, name]) => name))] : [],
  };
}

function listFiles() {
  const patterns = ['*.ts', '*.tsx', '*.lua', '*.mjs', '*.py'];
  const files = execFileSync('git', ['ls-files', ...patterns], { cwd: root, encoding: 'utf8' });
  return files.split('\n').filter((path) => path !== '' && !/\.gen\./.test(path));
}

/** Faults: one for each area and measure beyond its bound. */
export function findUnclearWords() {
  const areas = {};
  for (const path of listFiles()) {
    const sums = (areas[getArea(path)] ??= { words: 0, comments: 0, forNouns: 0, withoutNoun: 0, ofFunctions: 0 });
    const counts = readFile(path);
    sums.words += counts.words;
    sums.comments += counts.comments;
    for (const name of Object.keys(BOUNDS)) sums[name] += counts[name].length;
  }
  return Object.entries(areas).flatMap(([area, { words, comments, ...sums }]) => {
    const measured = {
      forNouns: [(1_000 * sums.forNouns) / words, 'of 1,000 words of comments stand for a noun'],
      withoutNoun: [(100 * sums.withoutNoun) / comments, '% of comments begin without a noun'],
      ofFunctions: [sums.ofFunctions, 'functions are named ...Of'],
    };
    return Object.entries(measured).flatMap(([name, [value, about]]) =>
      value <= BOUNDS[name] ? [] : [`${area}: ${value.toFixed(1)} ${about}; at most ${BOUNDS[name]} may`],
    );
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const wanted = process.argv.slice(2);
  for (const path of listFiles().filter((one) => wanted.length === 0 || wanted.some((each) => one.startsWith(each)))) {
    const { forNouns, withoutNoun, ofFunctions } = readFile(path);
    for (const one of [...forNouns, ...withoutNoun]) console.log(`${path}: ${one}`);
    for (const name of ofFunctions) console.log(`${path}: function ${name}`);
  }
}
