import type { Socket } from 'node:net';
import { buildConnector } from 'undici';
import { guardedLookup } from '../access/forbidden-addresses';

/** Maximum time in which a closed idle connection fails, milliseconds; later, the engine has got the request. */
const SOON_MS = 1_000;

/**
 * Bytes that Node receives ahead of the reader before it stops: more than a usual chunk, since a stop at each chunk
 * costs two system calls; less than an engine sends while a connection is not read (decision 0127).
 */
const BUFFER_BYTES = 1_024;

/** Bytes that a connection had received when it broke. */
const received = new WeakMap<object, number>();

/**
 * Connects as undici does, to addresses that are allowed, and notes for a broken connection whether it had been used
 * before.
 * @param isSmall chunks have one token; larger chunks need the usual buffer of Node
 */
export function createConnector(timeoutMs: number, isSmall = true): buildConnector.connector {
  // An option of `net.connect`, which the types of undici do not have.
  const buffer = isSmall ? { highWaterMark: BUFFER_BYTES } : {};
  const connect = buildConnector({ timeout: timeoutMs, lookup: guardedLookup(), ...buffer });
  return (options, callback) =>
    connect(options, (...result) => {
      const socket = result[1] as Socket | null;
      socket?.prependListener('error', (error) => received.set(error, socket.bytesRead));
      callback(...result);
    });
}

/**
 * Whether a call without an answer failed because its connection, which had answered calls before, was closed while it
 * was idle.
 */
export function isStale(error: unknown, afterMs: number): boolean {
  if (typeof error !== 'object' || error === null || afterMs > SOON_MS) return false;
  const { socket } = error as { socket?: { bytesRead?: number } };
  return (socket?.bytesRead ?? received.get(error) ?? 0) > 0;
}
