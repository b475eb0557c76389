import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const INCLUDE = /^--- @include "([^"]+)"$/;

/** A Lua script that cannot be loaded: a missing or circular include, or a header that breaks the contract. */
export class ScriptLoadError extends Error {
  constructor(file: string, line: number, reason: string) {
    super(`${file}:${line}: ${reason}`);
    this.name = 'ScriptLoadError';
  }
}

/**
 * Reads a script and puts every `--- @include "path"` in place, each file once, depth first.
 * @param root folder of the scripts
 * @param name path below it without `.lua`
 */
export function loadScript(root: string, name: string): string {
  const text = expand(root, join(root, `${name}.lua`), [], new Set());
  if (!text.startsWith('--[[')) throw new ScriptLoadError(`${name}.lua`, 1, 'must begin with its --[[ contract ]]');
  return text;
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
