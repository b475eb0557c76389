import type { IncomingMessage } from 'node:http';
import type { Route } from './route';

/** Prefix of `/sessions/{id}`, which may precede any path. */
const SESSION_PREFIX = '/sessions/';
const SESSION_PATH = '/sessions/{id}';
/** Maximum characters of a session in a path, more than the longest id has in a URL. */
const MAX_SESSION_CHARACTERS = 1_536;

/** A path as routes name it, with its parameters. */
export interface ParsedPath {
  /** Name of the path in the tables of routes; the path itself if no route has it. */
  path: string;
  /** The path without the prefix `/sessions/{id}`. */
  rest: string;
  /** Session of the prefix `/sessions/{id}`. */
  session?: string;
  /** Value of `{id}` or `{pool}` in the name of the path. */
  pathId?: string;
}

/** Beginning of paths with a parameter. */
interface Parameter {
  prefix: string;
  /** The parameter with its braces. */
  placeholder: string;
  /** A route ends with this parameter, whose values may have slashes. */
  mayHaveSlashes: boolean;
}

/** Finds the name that the path of a request has in the tables of routes. */
export class PathParser {
  /** Names of all paths that have a route. */
  private readonly names: ReadonlySet<string>;
  private readonly parameters: readonly Parameter[];
  /** Number of characters of the longest name. */
  private readonly maxLength: number;

  /** @param routes all routes by `METHOD /path` */
  constructor(routes: ReadonlyMap<string, Route>) {
    const names = new Set<string>();
    const parameters = new Map<string, Parameter>();
    for (const [key, { idMayHaveSlashes = false }] of routes) {
      const name = key.slice(key.indexOf(' ') + 1);
      names.add(name);
      const [beginning, prefix, placeholder] = /^([^{]*)(\{\w+\})/.exec(name) ?? [];
      if (beginning === undefined) continue;
      const mayHaveSlashes = idMayHaveSlashes || parameters.get(beginning)?.mayHaveSlashes === true;
      parameters.set(beginning, { prefix: prefix!, placeholder: placeholder!, mayHaveSlashes });
    }
    this.names = names;
    this.parameters = [...parameters.values()];
    this.maxLength = Math.max(...[...names].map(({ length }) => length));
  }

  /** Parses the path of a request. */
  parse({ url = '', method }: Pick<IncomingMessage, 'url' | 'method'>): ParsedPath {
    if (this.names.has(url)) return { path: url, rest: url };
    const [pathname = ''] = url.split('?', 1);
    const { session, rest } = this.splitSession(pathname);
    const named = this.findNamed(rest);
    if (session !== undefined && named === undefined && !this.names.has(rest) && isOfSession(method)) {
      // No route follows the prefix: the whole rest is the id.
      return { path: SESSION_PATH, rest: pathname, pathId: pathname.slice(SESSION_PREFIX.length) };
    }
    return { path: rest, rest, session, ...named };
  }

  /** Splits the session from a path. Ids may have slashes: the session ends before the first path that has a route. */
  private splitSession(pathname: string): { session?: string; rest: string } {
    if (!pathname.startsWith(SESSION_PREFIX)) return { rest: pathname };
    const begin = SESSION_PREFIX.length;
    const first = pathname.indexOf('/', begin + 1);
    for (let at = first; at > 0 && at <= begin + MAX_SESSION_CHARACTERS; at = pathname.indexOf('/', at + 1)) {
      const rest = pathname.slice(at);
      // Without this bound, the hash of a long text would be computed for each of many slashes.
      const isPath = rest.length <= this.maxLength && this.names.has(rest);
      if (isPath || this.findNamed(rest) !== undefined) return { session: pathname.slice(begin, at), rest };
    }
    return first < 0 ? { rest: pathname } : { session: pathname.slice(begin, first), rest: pathname.slice(first) };
  }

  /** Finds the name of a path with a parameter, and the value of the parameter. */
  private findNamed(path: string): { path: string; pathId: string } | undefined {
    for (const { prefix, placeholder, mayHaveSlashes } of this.parameters) {
      if (!path.startsWith(prefix) || path.length === prefix.length) continue;
      const slash = path.indexOf('/', prefix.length);
      const end = slash < 0 ? path.length : slash;
      const length = prefix.length + placeholder.length + path.length - end;
      if (end > prefix.length && length <= this.maxLength) {
        const name = `${prefix}${placeholder}${path.slice(end)}`;
        if (this.names.has(name)) return { path: name, pathId: path.slice(prefix.length, end) };
      }
      if (mayHaveSlashes) return { path: `${prefix}${placeholder}`, pathId: path.slice(prefix.length) };
    }
    return undefined;
  }
}

/** Whether `/sessions/{id}` itself has the method: then the whole rest of the path is the id, and may have slashes. */
function isOfSession(method: string | undefined): boolean {
  return method === 'GET' || method === 'DELETE';
}
