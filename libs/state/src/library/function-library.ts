import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { SCHEMA_VERSION } from './schema-version';

const FLAGS = /^Flags: (.+?)(?: ]])?$/m;
const KNOWN_FLAGS = ['allow-oom', 'no-writes'];
/** Modules that other modules use while these are loaded. All other modules are loaded after them, by name. */
const FIRST_MODULES = ['Tx', 'Keys', 'Format', 'Reply'];

/** A Lua source that breaks the contract of the library. */
export class LibraryError extends Error {
  override readonly name = 'LibraryError';

  constructor(file: string, reason: string) {
    super(`${file}: ${reason}`);
  }
}

export interface LibraryFunction {
  /** Name of the function in Redis: the names of the library and of the transition. */
  name: string;
  /** The transition takes in new work, so a full Redis refuses it. */
  isRefusedWhenFull: boolean;
}

/** All transitions and their modules as one library of Redis Functions. */
export interface FunctionLibrary {
  /**
   * Name with a hash of the text. The names of its functions have the hash too, so that two versions can exist in one
   * Redis.
   */
  name: string;
  text: string;
  /** Schema version of the pools that it stores, see schema-version.ts. */
  schemaVersion: number;
  /** Functions by the name of the transition, which is its path below the root without `.lua`. */
  functions: ReadonlyMap<string, LibraryFunction>;
  /** `file:line` of the source for a line of the text. */
  findSource(line: number): string | undefined;
}

interface Source {
  /** Path below the root without `.lua`. */
  path: string;
  text: string;
}

/**
 * Joins all Lua files below a folder. A file that begins with `--[[` is a transition, and its header the contract. Any
 * other file is a module: it returns one table, whose name in other files is the name of the file in CamelCase.
 * The line `Flags: ...` of a header becomes the flags of the function: `allow-oom` for a transition that frees memory
 * or keeps work alive, `no-writes` for a transition that only reads. Without flags, a transition takes in new work.
 * @throws LibraryError
 */
export function buildLibrary(root: string, schemaVersion = SCHEMA_VERSION): FunctionLibrary {
  const sources = readSources(root);
  const transitions = sources.filter(({ text }) => text.startsWith('--[['));
  const modules = modulesInOrder(sources.filter((source) => !transitions.includes(source)));
  const lines = [
    `local SCHEMA_VERSION = ${schemaVersion}`,
    `local function globals() return ${GLOBALS} end`,
    `local ${GLOBALS} = redis`,
    `local ${[...modules.keys()].join(', ')}`,
  ];
  const origins: { from: number; file: string }[] = [];
  const add = (source: Source, before: string, after: string): void => {
    lines.push(before);
    origins.push({ from: lines.length + 1, file: `${source.path}.lua` });
    lines.push(...source.text.trimEnd().split('\n'), after);
  };
  for (const [name, source] of modules) add(source, `${name} = (function()`, 'end)()');
  lines.push(...REGISTER.split('\n'));
  const isRefused = new Map<string, boolean>();
  for (const source of transitions) {
    const flags = parseFlags(source);
    isRefused.set(source.path, flags === undefined);
    add(
      source,
      `transition('${functionName(source.path)}', ${flags ? `{ '${flags}' }` : '{}'}, (function()`,
      'end)())',
    );
  }
  const hash = createHash('sha1').update(lines.join('\n')).digest('hex').slice(0, 12);
  const text = [`#!lua name=broomwagon_${hash}`, `local PREFIX = 'broomwagon_${hash}_'`, ...lines].join('\n');
  return {
    name: `broomwagon_${hash}`,
    schemaVersion,
    text,
    functions: new Map(
      [...isRefused].map(([path, isRefusedWhenFull]) => [
        path,
        { name: `broomwagon_${hash}_${functionName(path)}`, isRefusedWhenFull },
      ]),
    ),
    findSource(line) {
      const origin = origins.findLast(({ from }) => from <= line - 2);
      return origin && `${origin.file}:${line - 2 - origin.from + 1}`;
    },
  };
}

/**
 * Globals of Lua and Redis that the sources use. Each is a local variable of the library, because Redis looks a global
 * up through a metatable. While the library is loaded, only `redis` exists, so the first call sets the others.
 */
const GLOBALS =
  'redis, cjson, string, math, table, struct, ipairs, pairs, next, tonumber, tostring, type, unpack, rawget, rawset, ' +
  'setmetatable, pcall, error';

/** Opens a transition, reads its arguments, and runs it, unless this library does not know the schema of the pool. */
const REGISTER = `local function transition(name, flags, body)
  redis.register_function({ function_name = PREFIX .. name, flags = flags, callback = function(keys, argv)
    if not string then
      ${GLOBALS} = globals()
    end
    local tx = Tx.open(keys[1] .. ':', flags[1] == 'no-writes')
    local refusal = name ~= 'pools_raise_schema' and Tx.refusal(tx)
    return refusal or body(tx, cjson.decode(argv[1]), argv)
  end })
end`;

function readSources(root: string): Source[] {
  return readdirSync(root, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.lua'))
    .map((file) => ({
      path: file.slice(0, -'.lua'.length).replaceAll('\\', '/'),
      text: readFileSync(join(root, file), 'utf8'),
    }))
    .toSorted((one, other) => (one.path < other.path ? -1 : 1));
}

function modulesInOrder(sources: readonly Source[]): Map<string, Source> {
  const byName = new Map<string, Source>();
  for (const source of sources) {
    const name = moduleName(source.path);
    const other = byName.get(name);
    if (other) throw new LibraryError(`${source.path}.lua`, `the module ${name} is also in ${other.path}.lua`);
    if (!source.text.trimEnd().endsWith(`return ${name}`)) {
      throw new LibraryError(`${source.path}.lua`, `a module must end with: return ${name}`);
    }
    byName.set(name, source);
  }
  const names = [...byName.keys()];
  const ordered = [
    ...FIRST_MODULES.filter((name) => byName.has(name)),
    ...names.filter((n) => !FIRST_MODULES.includes(n)),
  ];
  return new Map(ordered.map((name) => [name, byName.get(name)!]));
}

/** @param path path of a module, without `.lua` */
export function moduleName(path: string): string {
  return basename(path).replace(/(?:^|-)(\w)/g, (_, first: string) => first.toUpperCase());
}

function functionName(path: string): string {
  return path.replaceAll(/[/-]/g, '_');
}

function parseFlags({ path, text }: Source): string | undefined {
  const header = text.slice(0, text.indexOf(']]') + 2);
  const flags = FLAGS.exec(header)?.[1];
  if (flags !== undefined && !KNOWN_FLAGS.includes(flags)) {
    throw new LibraryError(`${path}.lua`, `no flag ${flags}: one of ${KNOWN_FLAGS.join(', ')}, or none`);
  }
  return flags;
}
