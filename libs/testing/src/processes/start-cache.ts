import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, type Stats, statSync, writeFileSync } from 'node:fs';
import Module from 'node:module';
import { dirname, join, relative, resolve, sep } from 'node:path';
import { cachedDataVersionTag } from 'node:v8';
import { Script } from 'node:vm';
import { isMainThread } from 'node:worker_threads';

/**
 * Loaded with `node --require` into each process of a test run (vitest-global-setup.ts). A test run starts the same
 * programs of dist/ hundreds of times, and a third of the CPU time of a start is the search for 1,900 files and their
 * compilation. The first process of a program that ends in order writes a file with sources, compiled code and resolved
 * paths; later processes of the program read that file. A module that has changed since is loaded from its own file. A
 * build removes dist/, and with it these files.
 */

/** Begin and end of a source in the file, end of its compiled code, and size and time of change of the source. */
type Entry = [sourceStart: number, sourceEnd: number, codeEnd: number, bytes: number, mtimeMs: number];

interface Contents {
  /** Absolute path by folder of the importing module and requested name. */
  resolved: Record<string, Record<string, string>>;
  modules: Record<string, Entry>;
}

interface LoadedModule {
  exports: unknown;
  filename: string | null;
  require(id: string): unknown;
}

/** Parts of Node's loader that its types leave out. */
interface Loader {
  _resolveFilename(request: string, parent?: LoadedModule, isMain?: boolean, options?: object): string;
  _extensions: Record<string, (module: LoadedModule, filename: string) => void>;
  _cache: unknown;
  wrap(source: string): string;
  prototype: { _compile(this: LoadedModule, source: string, filename: string, format?: string): unknown };
}

type Wrapper = (exports: unknown, require: unknown, module: LoadedModule, filename: string, folder: string) => unknown;

const loader = Module as unknown as Loader;
const searchFile = loader._resolveFilename;
const LENGTH_BYTES = 4;
/** A few modules are loaded later or never from the cache; more are worth another record. */
const MAX_MISSING_MODULES = 100;

function createRequire(module: LoadedModule): unknown {
  const find = (request: string, options?: object) => loader._resolveFilename(request, module, false, options);
  const parts = { resolve: find, main: process.mainModule, extensions: loader._extensions, cache: loader._cache };
  return Object.assign((id: string) => module.require(id), parts);
}

function execute(script: Script, module: LoadedModule, filename: string): unknown {
  const wrapper = script.runInThisContext() as Wrapper;
  return wrapper.call(module.exports, module.exports, createRequire(module), module, filename, dirname(filename));
}

function readCache(file: string): { contents: Contents; data: Buffer } | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch {
    return undefined;
  }
  const end = LENGTH_BYTES + bytes.readUInt32LE(0);
  return {
    contents: JSON.parse(bytes.toString('utf8', LENGTH_BYTES, end)) as Contents,
    data: bytes.subarray(end),
  };
}

function loadFrom(file: string, { resolved, modules }: Contents, data: Buffer): void {
  let missing = 0;
  loader._resolveFilename = (request, parent, isMain, options) => {
    const found = parent?.filename && options === undefined && resolved[dirname(parent.filename)]?.[request];
    return found || searchFile.call(loader, request, parent, isMain, options);
  };
  const loadFile = loader._extensions['.js']!;
  loader._extensions['.js'] = (module, filename) => {
    const [start, sourceEnd, codeEnd, bytes, mtimeMs] = modules[filename] ?? [0, 0, 0, -1, 0];
    if (bytes < 0) missing += 1;
    const stat = bytes < 0 ? undefined : statSync(filename);
    if (stat?.size !== bytes || stat.mtimeMs !== mtimeMs) return loadFile(module, filename);
    const cachedData = data.subarray(sourceEnd, codeEnd);
    execute(new Script(data.toString('utf8', start, sourceEnd), { filename, cachedData }), module, filename);
  };
  // The file is of a short run, such as one with --help: the next process records again.
  process.on('exit', () => {
    if (missing > MAX_MISSING_MODULES) rmSync(file, { force: true });
  });
}

/** A source with its compiled script, and the state of its file when it was read. */
interface Recorded {
  source: string;
  script: Script;
  stat: Stats;
}

/**
 * Compiles a module; undefined for an ES module, and for a module with a dynamic import, which only Node's own
 * compilation supports.
 */
function compile(source: string, filename: string): Script | undefined {
  if (/\bimport\s*\(/.test(source)) return undefined;
  try {
    return new Script(source, { filename });
  } catch {
    return undefined;
  }
}

function record(file: string): void {
  const resolved: Contents['resolved'] = {};
  const recorded = new Map<string, Recorded>();
  loader._resolveFilename = (request, parent, isMain, options) => {
    const found = searchFile.call(loader, request, parent, isMain, options);
    if (parent?.filename && options === undefined) (resolved[dirname(parent.filename)] ??= {})[request] = found;
    return found;
  };
  const compileFile = loader.prototype._compile;
  loader.prototype._compile = function (content, filename, format) {
    const source = loader.wrap(content.startsWith('#!') ? `//${content}` : content);
    const script = format === 'module' ? undefined : compile(source, filename);
    if (script === undefined) return compileFile.call(this, content, filename, format);
    recorded.set(filename, { source, script, stat: statSync(filename) });
    return execute(script, this, filename);
  };
  process.on('exit', () => {
    try {
      write(file, resolved, recorded);
    } catch {
      // A build has removed the folder, or the disk is full: the next process records.
    }
  });
}

/** Written whole or not at all: processes of other tests read the file meanwhile. */
function write(file: string, resolved: Contents['resolved'], recorded: Map<string, Recorded>): void {
  const modules: Contents['modules'] = {};
  const parts: Buffer[] = [];
  let end = 0;
  for (const [filename, { source, script, stat }] of recorded) {
    const [text, code] = [Buffer.from(source), script.createCachedData()];
    const [textEnd, codeEnd] = [end + text.length, end + text.length + code.length];
    modules[filename] = [end, textEnd, codeEnd, stat.size, stat.mtimeMs];
    parts.push(text, code);
    end = codeEnd;
  }
  const head = Buffer.from(JSON.stringify({ resolved, modules }));
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt32LE(head.length);
  const folder = dirname(file);
  if (!existsSync(folder)) mkdirSync(folder);
  writeFileSync(`${file}.${process.pid}`, Buffer.concat([length, head, ...parts]));
  renameSync(`${file}.${process.pid}`, file);
}

const built = join(__dirname, '..', '..', '..', '..');
const program = relative(built, resolve(process.argv[1] ?? ''));
if (isMainThread && /^(apps|lab)\b/.test(program)) {
  // Other versions and flags of V8 refuse the compiled code.
  const file = join(built, '.starts', `${program.replaceAll(sep, '-')}-${cachedDataVersionTag()}`);
  const cache = readCache(file);
  if (cache === undefined) record(file);
  else loadFrom(file, cache.contents, cache.data);
}
