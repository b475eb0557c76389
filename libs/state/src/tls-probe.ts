import { connect, type ConnectionOptions } from 'node:tls';

/** Time limit of the handshake, milliseconds. A server that accepts the connection but exceeds it has no TLS. */
const HANDSHAKE_MS = 5_000;
/** Time after which a client's certificate that the server has not refused counts as accepted, milliseconds. */
const REFUSAL_MS = 1_000;

/**
 * Error with which a server refuses TLS; undefined when the server accepts TLS or is unavailable. With TLS 1.3 a client
 * certificate is refused after the handshake, and a client that has sent a command by then may be reset before it reads
 * the reason. This probe sends nothing, and waits for the session ticket, which a server sends once it has accepted the
 * client.
 */
export function tlsRefusal(host: string, port: number, tls: ConnectionOptions): Promise<unknown> {
  return new Promise((resolve) => {
    const socket = connect({ host, port, ...tls });
    const end = (refusal?: unknown) => {
      clearTimeout(timer);
      socket.destroy();
      resolve(refusal);
    };
    let timer = setTimeout(() => end(socket.connecting ? undefined : new Error('no TLS handshake')), HANDSHAKE_MS);
    socket.once('secureConnect', () => {
      clearTimeout(timer);
      timer = setTimeout(end, REFUSAL_MS);
    });
    socket.once('session', () => end());
    socket.on('error', end);
    socket.once('close', () => end());
  });
}
