import { BlockList, isIP } from 'node:net';
import { BroomwagonError } from '@broomwagon/contracts';
import { normalizeHost } from '../base-url';
import { isForbiddenHost } from './forbidden-addresses';

type Rule = (host: string, port: string) => boolean;

/**
 * Checks the address of an engine, at its registration and at each call: a caller must not make a service call any
 * address, or send a key there. Entries of the list: a name, a pattern such as `*.engines.svc`, an address, a CIDR;
 * each entry may end in `:port`. A name is never resolved: a CIDR admits addresses only. No list admits link-local and
 * metadata addresses; an empty list admits all others.
 */
export class EngineAccess {
  private readonly rules: readonly Rule[];

  /** @throws Error for an invalid entry */
  constructor(allowList: readonly string[] = []) {
    this.rules = allowList.map(parseRule);
  }

  /** @throws BroomwagonError VALIDATION_FAILED for an endpoint that is no URL or may not be called */
  check(endpoint: string): void {
    const reason = this.findRefusal(endpoint);
    if (reason !== undefined) throw new BroomwagonError('VALIDATION_FAILED', reason, { field: 'endpoint' });
  }

  /** Reason why an endpoint must not be called; undefined if it may be called. */
  findRefusal(endpoint: string): string | undefined {
    let url: URL;
    try {
      url = new URL(endpoint);
    } catch {
      return 'endpoint must be an URL';
    }
    const host = normalizeHost(url.hostname);
    if (isForbiddenHost(host)) return `${host} is a link-local or metadata address, which is never called`;
    const port = url.port || (url.protocol === 'https:' ? '443' : '80');
    if (this.rules.length === 0 || this.rules.some((admits) => admits(host, port))) return undefined;
    return `${host} is not in ENGINE_ALLOW_LIST`;
  }
}

function parseRule(entry: string): (host: string, port: string) => boolean {
  const { pattern, port: wantedPort } = splitPort(entry.trim().toLowerCase());
  const admits = parseHostRule(pattern, entry);
  return (host, port) => (wantedPort === undefined || wantedPort === port) && admits(host);
}

/** Splits an entry such as `[::1]:8000`, `host:8000`, `10.0.0.0/8` or `fd00::/8` into pattern and port. */
function splitPort(entry: string): { pattern: string; port?: string } {
  const match = /^\[([^\]]+)\](?::(\d+))?$/.exec(entry) ?? /^([^:]+):(\d+)$/.exec(entry);
  return match ? { pattern: match[1]!, port: match[2] } : { pattern: entry };
}

function parseHostRule(pattern: string, entry: string): (host: string) => boolean {
  const [address, bits] = normalizeHost(pattern).split('/');
  const version = isIP(address ?? '');
  if (version !== 0) {
    const family = version === 4 ? 'ipv4' : 'ipv6';
    const prefix = bits === undefined ? (version === 4 ? 32 : 128) : Number(bits);
    const range = new BlockList();
    try {
      range.addSubnet(address!, prefix, family);
    } catch {
      throw new Error(`ENGINE_ALLOW_LIST: ${entry} is no CIDR`);
    }
    return (host) => isIP(host) !== 0 && range.check(host, isIP(host) === 4 ? 'ipv4' : 'ipv6');
  }
  const names = new RegExp(`^${pattern.replaceAll(/[.+^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*')}$`);
  return (host) => names.test(host);
}
