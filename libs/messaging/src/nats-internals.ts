import { type ConnectionOptions, ErrorCode, type NatsConnection, NatsError, type ServerInfo } from 'nats';

/** Fields of a connection of nats.js that its types do not show. */
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

/** Sets how long each further dial may take, milliseconds: nats.js reads the option at each dial. */
export function setDialTimeout(nats: NatsConnection, timeoutMs: number): void {
  toInternals(nats).options.timeout = timeoutMs;
}

/** The last error that NATS sent, if there is one. */
export function getLastError(nats: NatsConnection): Error | undefined {
  return toInternals(nats).protocol.lastError;
}

/** The addresses that a lost connection dials in turn. */
export function listAddresses(nats: NatsConnection): readonly { hostname: string; port: number }[] {
  return toInternals(nats).protocol.servers.getServers();
}

/**
 * Makes nats.js dial the next address at once, or not before the wait of its handler is over: nats.js adds the wait to
 * the time at which it has dialed the address last.
 */
export function allowDial(nats: NatsConnection, isAllowed: boolean): void {
  for (const server of toInternals(nats).protocol.servers.getServers()) server.lastConnect = isAllowed ? 0 : Date.now();
}

/**
 * Fails a dial whose connection was closed before NATS answered the first ping: nats.js would wait for the answer until
 * the dial times out.
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
