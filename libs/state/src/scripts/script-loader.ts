import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const INCLUDE = /^--- @include "([^"]+)"$/;
const FLAGS = /^Flags: (.+?)(?: ]])?$/m;
const KNOWN_FLAGS = ['allow-oom', 'no-writes'];

/** A Lua script that cannot be loaded: a missing or circular include, or a header that breaks the contract. */
export class ScriptLoadError extends Error {
  constructor(file: string, line: number, reason: string) {
    super(`${file}:${line}: ${reason}`);
    this.name = 'ScriptLoadError';
  }
}

/**
 * Reads a script and puts every `--- @include "path"` in place, each file once, depth first. What the script does not
 * use of its includes is left out. The line `Flags: ...` of its header becomes the flags of Redis: `allow-oom` for what
 * frees memory or keeps work alive, `no-writes` for what only reads; a script without flags takes new work in, and a full
 * Redis refuses it.
 * @param root folder of the scripts
 * @param name path below it without `.lua`
 */
export function loadScript(root: string, name: string): string {
  const text = expand(root, join(root, `${name}.lua`), [], new Set());
  if (!text.startsWith('--[[')) throw new ScriptLoadError(`${name}.lua`, 1, 'must begin with its --[[ contract ]]');
  const header = text.slice(0, text.indexOf(']]') + 2);
  const flags = FLAGS.exec(header)?.[1];
  if (flags !== undefined && !KNOWN_FLAGS.includes(flags)) {
    throw new ScriptLoadError(`${name}.lua`, 1, `no flag ${flags}: one of ${KNOWN_FLAGS.join(', ')}, or none`);
  }
  return `#!lua${flags === undefined ? '' : ` flags=${flags}`}\n${withoutUnused(text)}`;
}

/** True for a loaded script that takes new work in: a Redis that is full refuses it. */
export function isRefusedWhenFull(text: string): boolean {
  return text.startsWith('#!lua\n');
}

function expand(root: string, file: string, stack: readonly string[], seen: Set<string>): string {
  seen.add(file);
  const here = relative(root, file);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new ScriptLoadError(stack.at(-1) ?? here, 1, `cannot read ${here} (${(cause as Error).message})`);
  }
  return text
    .split('\n')
    .map((line, index) => {
      const match = INCLUDE.exec(line.trim());
      if (!match) return line;
      const target = join(dirname(file), `${match[1]}.lua`);
      if (target === file || stack.includes(relative(root, target))) {
        throw new ScriptLoadError(here, index + 1, `circular include of ${relative(root, target)}`);
      }
      return seen.has(target) ? '' : expand(root, target, [...stack, here], seen);
    })
    .join('\n');
}

interface Definition {
  name: string;
  /** Its first line, and the line after its last. */
  from: number;
  to: number;
}

const FUNCTION = /^local function (\w+)\(/;
const ONE_LINE = /\).* end(\s*--.*)?$/;
const KEY = /^(?: {2}(\w+) = root \.\. |function (key\.\w+)\()/;

/** Local functions and names of `key`. They begin at the start of a line, and end on it or with `end` at the start of one. */
function definitionsIn(lines: readonly string[]): Definition[] {
  const keysFrom = lines.indexOf('local key = {');
  const keysTo = lines.indexOf('}', keysFrom);
  return lines.flatMap((line, from) => {
    const key = KEY.exec(line);
    if (key && (key[2] || (from > keysFrom && from < keysTo)))
      return [{ name: key[2] ?? `key.${key[1]}`, from, to: from + 1 }];
    const name = FUNCTION.exec(line)?.[1];
    if (!name) return [];
    const end = ONE_LINE.test(line) ? from : lines.indexOf('end', from);
    return [{ name, from, to: end + 1 }];
  });
}

/**
 * Without the functions and keys that nothing uses. Redis runs a script from its first line on each call, and to set up
 * a hundred functions takes longer than a simple transition; also, a script may have only 200 locals.
 */
function withoutUnused(text: string): string {
  const lines = text.split('\n');
  const uses = new Map<string, number>();
  const count = (from: number, to: number, sign: 1 | -1): void => {
    for (const name of lines.slice(from, to).flatMap(namesIn)) uses.set(name, (uses.get(name) ?? 0) + sign);
  };
  const headerEnd = lines.findIndex((line) => line.endsWith(']]')) + 1;
  count(headerEnd, lines.length, 1);
  const kept = new Set(definitionsIn(lines));
  for (let before = -1; before !== kept.size;) {
    before = kept.size;
    const namesKeys = lines.some((line) => line.includes('key['));
    for (const definition of kept) {
      const { name, from, to } = definition;
      if (namesKeys && name.startsWith('key.')) continue;
      const own = lines
        .slice(from, to)
        .flatMap(namesIn)
        .filter((other) => other === name).length;
      if ((uses.get(name) ?? 0) > own) continue;
      kept.delete(definition);
      count(from, to, -1);
      lines.fill('', from, to);
    }
  }
  return lines.join('\n');
}

/** The names a line of code uses; `key.name` as one. */
function namesIn(line: string): string[] {
  return withoutComment(line).match(/\bkey\.\w+|\b[A-Za-z_]\w*/g) ?? [];
}

function withoutComment(line: string): string {
  return line.replace(/\s*--(?!.*['"]).*$/, '');
}
