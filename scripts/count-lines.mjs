// `node scripts/count-lines.mjs [--long] [COMMIT ...]`: lines of TypeScript and Lua of each app and library at each
// commit (default HEAD), and how the last differs from the first. `code` is without blank lines and comments. `--long`
// lists the lines of more than 120 characters of the last commit.
import { execFileSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { root } from './prepare.mjs';

const MAX_LINE = 120;
/** Former paths of files of lab/, from before there was a lab/. */
const LAB_BEFORE = [
  /^(bench|apps\/(engine-simulator|laboratory))\//,
  /^libs\/policies\/src\/(jobs|prompt-lengths|routing)\//,
  /^libs\/policies\/src\/(admission\/slow-start|engine-model\/(engine-model|lockstep-engines|min-heap))\.ts$/,
  /^libs\/policies\/src\/lengths\/(length-trace|random-stream|response-length)\.ts$/,
];
/** Former paths of files that were moved to lab/, libs/testing and tools/ later. */
const MOVED = [
  /^libs\/(contracts\/src\/schema\/|messaging\/src\/events\/record-events\.ts$)/,
  /^libs\/policies\/src\/(engine-model\/engine-parameters|lengths\/length-presets|tail\/pins)\.ts$/,
  /^apps\/trainer\//,
];

const git = (args, input) =>
  execFileSync('git', args, {
    cwd: root,
    encoding: 'utf8',
    input,
    maxBuffer: 1 << 28,
    stdio: ['pipe', 'pipe', 'inherit'],
  });

/** Part of the repository to which a file belongs: `tests`, `lab`, or the app or library. */
function partOf(path, hasLab) {
  if (/\.(spec|fixture)\.ts$|^(test|libs\/testing|tools)\//.test(path)) return 'tests';
  if (path.startsWith('lab/') || MOVED.concat(hasLab ? [] : LAB_BEFORE).some((old) => old.test(path))) return 'lab';
  return path.split('/').slice(0, 2).join('/');
}

function withoutComments(text, isLua) {
  const bare = isLua
    ? text.replaceAll(/--\[\[[^]*?\]\]/g, '').replaceAll(/^\s*--.*$/gm, '')
    : text.replaceAll(/^\s*\/\*[^]*?\*\//gm, '').replaceAll(/^\s*\/\/.*$/gm, '');
  return bare.split('\n').filter((line) => line.trim() !== '').length;
}

/** Counts of each part at a commit, with `product` for all but tests and lab, and its long lines. */
function countAt(commit) {
  const files = git(['ls-tree', '-r', '--name-only', commit, '--', 'apps', 'libs', 'lab', 'bench', 'tools', 'test'])
    .split('\n')
    .filter((path) => /\.(ts|lua)$/.test(path));
  const hasLab = files.some((path) => path.startsWith('lab/'));
  const counts = new Map();
  const long = [];
  for (const path of files) {
    const text = git(['show', `${commit}:${path}`]);
    const part = partOf(path, hasLab);
    const isLua = path.endsWith('.lua');
    const lines = text.split('\n');
    const longLines = lines.map((line, index) => [line, index + 1]).filter(([line]) => line.length > MAX_LINE);
    long.push(...longLines.map(([line, number]) => `${path}:${number}: ${line.trim()}`));
    for (const name of part === 'tests' || part === 'lab' ? [part] : [part, 'product']) {
      const sum = counts.get(name) ?? { files: 0, TypeScript: 0, Lua: 0, lines: 0, code: 0, [`> ${MAX_LINE}`]: 0 };
      sum.files += 1;
      sum[isLua ? 'Lua' : 'TypeScript'] += lines.length - 1;
      sum.lines += lines.length - 1;
      sum.code += withoutComments(text, isLua);
      sum[`> ${MAX_LINE}`] += longLines.length;
      counts.set(name, sum);
    }
  }
  const order = (name) => ['product', 'lab', 'tests'].indexOf(name);
  return { counts: new Map([...counts].sort(([a], [b]) => order(a) - order(b) || a.localeCompare(b))), long };
}

function difference(first, last) {
  const parts = new Set([...first.keys(), ...last.keys()]);
  return new Map(
    [...parts].map((part) => {
      const [before, after] = [first.get(part) ?? {}, last.get(part) ?? {}];
      const columns = Object.keys({ ...before, ...after });
      return [part, Object.fromEntries(columns.map((name) => [name, (after[name] ?? 0) - (before[name] ?? 0)]))];
    }),
  );
}

const { values, positionals } = parseArgs({ allowPositionals: true, options: { long: { type: 'boolean' } } });
const commits = positionals.length > 0 ? positionals : ['HEAD'];
const all = commits.map(countAt);
commits.forEach((commit, index) => {
  console.log(`\n${commit}`);
  console.table(Object.fromEntries(all[index].counts));
});
if (commits.length > 1) {
  console.log(`\n${commits.at(-1)} compared with ${commits[0]}`);
  console.table(Object.fromEntries(difference(all[0].counts, all.at(-1).counts)));
}
if (values.long) console.log(`\n${all.at(-1).long.join('\n')}`);
