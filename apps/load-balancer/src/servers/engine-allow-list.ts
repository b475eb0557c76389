import { BlockList, isIP } from 'node:net';
import { Injectable } from '@nestjs/common';
import { BroomwagonError } from '@broomwagon/contracts';
import { LoadBalancerConfig } from '../load-balancer.config';

/**
 * The hosts engines may have (ENGINE_ALLOW_LIST), checked at registration, so that nobody can make the load-balancer or
 * a worker call an address of his choice. Entries: a name, a pattern as `*.engines.svc`, an address, a CIDR; each may
 * end in `:port`. A name is never resolved: a CIDR admits addresses only. An empty list admits all.
 */
@Injectable()
export class EngineAllowList {
  private readonly rules: ((host: string, port: string) => boolean)[];

  constructor(config: LoadBalancerConfig) {
    this.rules = config.engineAllowList.map(ruleOf);
  }

  /** @throws BroomwagonError VALIDATION_FAILED for an endpoint that is no URL or outside the list */
  check(endpoint: string): void {
    if (this.rules.length === 0) return;
    let url: URL;
    try {
      url = new URL(endpoint);
    } catch {
      throw new BroomwagonError('VALIDATION_FAILED', 'endpoint must be an URL', { field: 'endpoint' });
    }
    const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase();
    const port = url.port || (url.protocol === 'https:' ? '443' : '80');
    if (this.rules.some((admits) => admits(host, port))) return;
    throw new BroomwagonError('VALIDATION_FAILED', `${host} is outside of ENGINE_ALLOW_LIST`, { field: 'endpoint' });
  }
}

function ruleOf(entry: string): (host: string, port: string) => boolean {
  const { pattern, port: wantedPort } = splitPort(entry.trim().toLowerCase());
  const admits = hostRuleOf(pattern, entry);
  return (host, port) => (wantedPort === undefined || wantedPort === port) && admits(host);
}

/** `[::1]:8000`, `host:8000`, `10.0.0.0/8`, `fd00::/8`. */
function splitPort(entry: string): { pattern: string; port?: string } {
  const match = /^\[([^\]]+)\](?::(\d+))?$/.exec(entry) ?? /^([^:]+):(\d+)$/.exec(entry);
  return match ? { pattern: match[1]!, port: match[2] } : { pattern: entry };
}

function hostRuleOf(pattern: string, entry: string): (host: string) => boolean {
  const [address, bits] = pattern.split('/');
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
