export interface HostAndPort {
  host: string;
  port: number;
}

/**
 * Parts of an address of Redis: of one server, of nodes of a Cluster, or of Sentinels and the primary that they watch.
 */
export interface RedisAddress {
  kind: 'server' | 'cluster' | 'sentinel';
  usesTls: boolean;
  /** One or more addresses. Some nodes or Sentinels are enough, because they report the others. */
  hosts: HostAndPort[];
  username?: string;
  password?: string;
  /** Name of the primary; only for the kind `sentinel`. */
  primaryName?: string;
}

/** Valid forms of an address, for messages. */
export const REDIS_ADDRESS_FORMS =
  'redis://host:6379, redis+cluster://host:6379,host:6379 or redis+sentinel://host:26379,host:26379/name-of-primary';

const FORM = /^(rediss?)(\+cluster|\+sentinel)?:\/\/(?:([^\s@/?#]*)@)?([^\s@/?#]+)(?:\/([^\s?#]*))?(?:\?\S*)?$/;
const DEFAULT_PORTS = { server: 6379, cluster: 6379, sentinel: 26_379 };

/**
 * Parses an address in one of {@link REDIS_ADDRESS_FORMS}; undefined for any other text. The scheme `rediss` requires
 * TLS.
 */
export function parseRedisAddress(url: string): RedisAddress | undefined {
  const [, scheme, suffix = '', login, hostList, path = ''] = FORM.exec(url) ?? [];
  if (hostList === undefined) return undefined;
  const kind = suffix === '+cluster' ? 'cluster' : suffix === '+sentinel' ? 'sentinel' : 'server';
  const hosts = hostList.split(',').map((one) => parseHost(one, DEFAULT_PORTS[kind]));
  if (!hosts.every((one) => one !== undefined)) return undefined;
  if (kind === 'server' && hosts.length > 1) return undefined;
  // A Cluster has no numbered databases, and Sentinels name their primaries.
  if ((kind === 'cluster' && path !== '') || (kind === 'sentinel' && path === '')) return undefined;
  const credentials = login === undefined ? {} : parseLogin(login);
  if (credentials === undefined) return undefined;
  return {
    kind,
    usesTls: scheme === 'rediss',
    hosts,
    ...credentials,
    ...(kind === 'sentinel' ? { primaryName: path } : {}),
  };
}

/** Parses pairs `announced=reachable` of `host:port`, separated by commas; undefined for any other text. */
export function parseNatMap(text: string): Record<string, HostAndPort> | undefined {
  const map: Record<string, HostAndPort> = {};
  for (const pair of text.split(',')) {
    const [announced, reachable, ...rest] = pair.trim().split('=');
    const [from, to] = [parseHost(announced ?? ''), parseHost(reachable ?? '')];
    if (from === undefined || to === undefined || rest.length > 0) return undefined;
    map[`${from.host}:${from.port}`] = to;
  }
  return map;
}

function parseHost(text: string, defaultPort = 0): HostAndPort | undefined {
  const [, bracketed, plain, digits] = /^(?:\[([\da-fA-F:.]+)\]|([^\s:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  const port = digits === undefined ? defaultPort : Number(digits);
  return host === undefined || port < 1 || port > 65_535 ? undefined : { host, port };
}

function parseLogin(login: string): { username?: string; password?: string } | undefined {
  const colon = login.indexOf(':');
  const [user, password] = colon < 0 ? [login, undefined] : [login.slice(0, colon), login.slice(colon + 1)];
  try {
    return {
      ...(user === '' ? {} : { username: decodeURIComponent(user) }),
      ...(password === undefined ? {} : { password: decodeURIComponent(password) }),
    };
  } catch {
    return undefined;
  }
}
