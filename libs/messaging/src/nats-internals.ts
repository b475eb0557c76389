import { type ConnectionOptions, ErrorCode, type NatsConnection, NatsError, type ServerInfo } from 'nats';

/** Fields of a connection of nats.js that are not in its types. */
interface Internals {
  options: ConnectionOptions;
  protocol: {
    lastError?: Error;
    /** Fails the dial in progress. */
    connectError?: (error: Error) => void;
    transport: { isClosed: boolean };
    info?: ServerInfo;
    servers: { getServers(): readonly Address[] };
  };
}
interface Address {
  listen: string;
  hostname: string;
  port: number;
  gossiped: boolean;
  lastConnect: number;
}

const toInternals = (nats: NatsConnection) => nats as unknown as Internals;

/** Sets the maximum duration of further dials, milliseconds. nats.js reads the option at each dial. */
export function setDialTimeout(nats: NatsConnection, timeoutMs: number): void {
  toInternals(nats).options.timeout = timeoutMs;
}

/** Returns the last error that NATS has sent, if any. */
export function getLastError(nats: NatsConnection): Error | undefined {
  return toInternals(nats).protocol.lastError;
}

/** Returns the addresses that a lost connection dials in turn. */
export function listAddresses(nats: NatsConnection): readonly { hostname: string; port: number }[] {
  return toInternals(nats).protocol.servers.getServers();
}

/**
 * Lets nats.js dial the next address at once (`isAllowed`), or only after the wait of its reconnect handler, which
 * nats.js counts from `lastConnect` of the address.
 */
export function allowDial(nats: NatsConnection, isAllowed: boolean): void {
  for (const server of toInternals(nats).protocol.servers.getServers()) server.lastConnect = isAllowed ? 0 : Date.now();
}

/**
 * Fails a dial if its connection was closed before NATS has answered the first ping. nats.js would wait until the dial
 * times out.
 */
export function failClosedDial(nats: NatsConnection): void {
  const { protocol } = toInternals(nats);
  if (protocol.transport.isClosed) protocol.connectError?.(NatsError.errorForCode(ErrorCode.Disconnect));
}

/** True for an address that only servers of the cluster have announced. */
export function isAnnounced(nats: NatsConnection, address: string): boolean {
  return toInternals(nats)
    .protocol.servers.getServers()
    .some(({ listen, gossiped }) => gossiped && listen === address);
}
