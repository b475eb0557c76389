import type { ConnectionOptions, NatsConnection, ServerInfo } from 'nats';

/** Fields of a connection of nats.js that its types do not show. */
interface Internals {
  options: ConnectionOptions;
  protocol: {
    lastError?: Error;
    info?: ServerInfo;
    servers: { getServers(): readonly { listen: string; gossiped: boolean }[] };
  };
}

const toInternals = (nats: NatsConnection) => nats as unknown as Internals;

/** Sets how long each further dial may take, milliseconds: nats.js reads the option at each dial. */
export function setDialTimeout(nats: NatsConnection, timeoutMs: number): void {
  toInternals(nats).options.timeout = timeoutMs;
}

/** The last error that NATS sent, if there is one. */
export function getLastError(nats: NatsConnection): Error | undefined {
  return toInternals(nats).protocol.lastError;
}

/** Number of addresses that a lost connection dials in turn. */
export function countAddresses(nats: NatsConnection): number {
  return toInternals(nats).protocol.servers.getServers().length;
}

/** True for an address that only servers of the cluster have announced. */
export function isAnnounced(nats: NatsConnection, address: string): boolean {
  return toInternals(nats)
    .protocol.servers.getServers()
    .some(({ listen, gossiped }) => gossiped && listen === address);
}
