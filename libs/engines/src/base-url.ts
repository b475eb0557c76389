import { createHash } from 'node:crypto';
import { invalidField, MAX_ID_BYTES, type ServerId } from '@broomwagon/contracts';

/** Hexadecimal digits of the hash at the end of an id whose readable part could name two URLs. */
const HASH_DIGITS = 12;
/** IPv4 address in IPv6 (`::ffff:7f00:1`), as {@link URL} writes it. */
const MAPPED_IPV4 = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/;
/** End of a readable part that could be a port. */
const PORT_END = /-[1-9]\d{0,4}$/;

/**
 * Normalizes the base URL of an engine: lower case, without default port, `/v1` and slashes at its end. An IPv4 address
 * in the form of IPv6 becomes IPv4, and `localhost` becomes 127.0.0.1.
 * @throws BroomwagonError VALIDATION_FAILED (field `endpoint`) for a scheme other than http and https, a user, a query
 *   or a fragment
 */
export function normalizeBaseUrl(text: string): string {
  if (!URL.canParse(text)) throw invalidField('endpoint', 'must be a URL');
  const { protocol, hostname, port, pathname, username, password, search, hash } = new URL(text);
  if (protocol !== 'http:' && protocol !== 'https:')
    throw invalidField('endpoint', 'must have the scheme http or https');
  if (username + password + search + hash !== '') {
    throw invalidField('endpoint', 'must have no user, password, query and fragment: callers read it');
  }
  const host = normalizeHost(hostname);
  const path = pathname.replace(/\/+$/, '').replace(/\/v1$/, '').replace(/\/+$/, '');
  return `${protocol}//${host.includes(':') ? `[${host}]` : host}${port && `:${port}`}${path}`;
}

/** @param hostname host of a {@link URL}; the result has no brackets */
export function normalizeHost(hostname: string): string {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (host === 'localhost') return '127.0.0.1';
  const [, high, low] = MAPPED_IPV4.exec(host) ?? [];
  if (high === undefined || low === undefined) return host;
  const [first, second] = [parseInt(high, 16), parseInt(low, 16)];
  return [first >> 8, first & 255, second >> 8, second & 255].join('.');
}

/**
 * The id of the server at a URL: equal for all spellings of one base URL, and different for different base URLs.
 * `http://host:8000` is `host-8000`; an id that could be read as another URL ends with `_` and a hash.
 * @throws BroomwagonError as {@link normalizeBaseUrl}
 */
export function toServerId(url: string): ServerId {
  const baseUrl = normalizeBaseUrl(url);
  const { host, pathname } = new URL(baseUrl);
  const name = `${host}${pathname}`.replaceAll(/[^A-Za-z0-9.]+/g, '-').replaceAll(/^-+|-+$/g, '');
  if (isPlain(baseUrl, name)) return name;
  const hash = createHash('sha256').update(baseUrl).digest('hex').slice(0, HASH_DIGITS);
  return `${name.slice(0, MAX_ID_BYTES - HASH_DIGITS - 1)}_${hash}`;
}

/** Whether the name stands for this base URL and no other URL. */
function isPlain(baseUrl: string, name: string): boolean {
  const { protocol, hostname, port, pathname } = new URL(baseUrl);
  if (protocol !== 'http:' || pathname !== '/' || name.length > MAX_ID_BYTES) return false;
  return port === '' ? name === hostname && !PORT_END.test(name) : name === `${hostname}-${port}`;
}
